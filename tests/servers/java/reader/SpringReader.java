package reader;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.cloud.client.loadbalancer.LoadBalanced;
import org.springframework.context.annotation.Bean;
import org.springframework.http.client.SimpleClientHttpRequestFactory;
import org.springframework.web.client.RestTemplate;

/** A caller in the data centre: looks apps up in Eureka by name, calls them in turn, and prints what became of each call. */
@SpringBootApplication
public class SpringReader {
    @Bean
    @LoadBalanced
    RestTemplate calls() {
        SimpleClientHttpRequestFactory factory = new SimpleClientHttpRequestFactory();
        factory.setConnectTimeout(5000);
        factory.setReadTimeout(5000);
        return new RestTemplate(factory);
    }

    public static void main(String[] args) throws InterruptedException {
        SpringApplication application = new SpringApplication(SpringReader.class);
        application.setWebApplicationType(WebApplicationType.NONE);
        var context = application.run(args);
        RestTemplate calls = context.getBean(RestTemplate.class);
        String[] apps = context.getEnvironment().getRequiredProperty("reader.apps").split(",");
        while (true) {
            for (String app : apps) {
                String outcome;
                try {
                    outcome = "ok " + calls.getForObject("http://" + app + "/", String.class);
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
