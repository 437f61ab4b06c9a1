package reader;

import java.util.LinkedHashMap;
import java.util.Map;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.cloud.openfeign.EnableFeignClients;
import org.springframework.cloud.openfeign.FeignClientBuilder;
import org.springframework.web.bind.annotation.GetMapping;

/** A caller in the data centre: calls apps by name with Feign, in turn, and prints what became of each call. */
@SpringBootApplication(proxyBeanMethods = false)
@EnableFeignClients
public class SpringReader {
    interface App {
        @GetMapping("/")
        String call();
    }

    public static void main(String[] args) throws InterruptedException {
        SpringApplication application = new SpringApplication(SpringReader.class);
        application.setWebApplicationType(WebApplicationType.NONE);
        var context = application.run(args);
        String[] apps = context.getEnvironment().getRequiredProperty("reader.apps").split(",");
        Map<String, App> clients = new LinkedHashMap<>();
        for (String app : apps) {
            clients.put(app, new FeignClientBuilder(context).forType(App.class, app).build());
        }
        while (true) {
            for (String app : apps) {
                String outcome;
                try {
                    outcome = "ok " + clients.get(app).call();
                } catch (RuntimeException failed) {
                    outcome = "failed " + failed.toString().replaceAll("\\s+", " ");
                }
                System.out.println("CALL " + app + " " + outcome);
                System.out.flush();
            }
            Thread.sleep(100);
        }
    }
}
