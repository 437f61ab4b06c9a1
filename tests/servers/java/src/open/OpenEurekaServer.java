package open;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.cloud.netflix.eureka.server.EnableEurekaServer;

/** A plain Eureka server: everything else is Spring's own default. */
@SpringBootApplication
@EnableEurekaServer
public class OpenEurekaServer {
    public static void main(String[] args) {
        SpringApplication.run(OpenEurekaServer.class, args);
    }
}
