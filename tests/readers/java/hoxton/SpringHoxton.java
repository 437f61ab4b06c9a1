package readers;

import com.fasterxml.jackson.databind.ObjectMapper;
import feign.Client;
import feign.Request;
import feign.Response;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.cloud.client.ServiceInstance;
import org.springframework.cloud.client.loadbalancer.LoadBalancerClient;
import org.springframework.cloud.netflix.ribbon.SpringClientFactory;
import org.springframework.cloud.openfeign.EnableFeignClients;
import org.springframework.cloud.openfeign.FeignClientBuilder;
import org.springframework.cloud.openfeign.ribbon.CachingSpringLoadBalancerFactory;
import org.springframework.cloud.openfeign.ribbon.LoadBalancerFeignClient;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.web.bind.annotation.GetMapping;

/**
 * What Ribbon and Feign of the Hoxton line find by Eureka, as a line of JSON after "SEEN " whenever
 * it changes. Neither calls an app: Feign's own client answers with the URL that it is to call.
 */
@SpringBootApplication(proxyBeanMethods = false)
@EnableFeignClients
public class SpringHoxton {
    private static final ObjectMapper JSON = new ObjectMapper();

    interface App {
        @GetMapping("/")
        String call();
    }

    @Bean
    Client feignClient(CachingSpringLoadBalancerFactory balancers, SpringClientFactory clients) {
        Client echo = (request, options) -> answer(request);
        return new LoadBalancerFeignClient(echo, balancers, clients);
    }

    private static Response answer(Request request) {
        return Response.builder()
            .status(200)
            .headers(Collections.emptyMap())
            .request(request)
            .body(request.url(), StandardCharsets.UTF_8)
            .build();
    }

    public static void main(String[] args) throws Exception {
        SpringApplication application = new SpringApplication(SpringHoxton.class);
        application.setWebApplicationType(WebApplicationType.NONE);
        ConfigurableApplicationContext context = application.run(args);
        String[] apps = context.getEnvironment().getRequiredProperty("reader.apps").split(",");
        LoadBalancerClient ribbon = context.getBean(LoadBalancerClient.class);
        Map<String, App> clients = new LinkedHashMap<>();
        for (String app : apps) {
            clients.put(app, new FeignClientBuilder(context).forType(App.class, app).build());
        }
        String before = "";
        while (true) {
            Map<String, Object> balanced = new LinkedHashMap<>();
            Map<String, Object> called = new LinkedHashMap<>();
            for (String app : apps) {
                balanced.put(app, chosen(ribbon, app));
                called.put(app, called(clients.get(app)));
            }
            Map<String, Object> all = new LinkedHashMap<>();
            all.put("Ribbon", balanced);
            all.put("Feign", called);
            String now = JSON.writeValueAsString(all);
            if (!now.equals(before)) {
                System.out.println("SEEN " + now);
                System.out.flush();
                before = now;
            }
            Thread.sleep(200);
        }
    }

    /** Two choices in turn reach both instances of an app that has two. */
    private static List<Object> chosen(LoadBalancerClient ribbon, String app) {
        Map<String, Object> all = new TreeMap<>();
        for (int choice = 0; choice < 2; choice++) {
            ServiceInstance instance = ribbon.choose(app);
            if (instance != null) {
                URI url = ribbon.reconstructURI(instance, URI.create("http://" + app + "/"));
                all.put(url.toString(), seen(url, instance.getMetadata()));
            }
        }
        return new ArrayList<>(all.values());
    }

    private static List<Object> called(App app) {
        Map<String, Object> all = new TreeMap<>();
        for (int call = 0; call < 2; call++) {
            try {
                String url = app.call();
                all.put(url, seen(URI.create(url), null));
            } catch (RuntimeException nobody) {
                continue; // Feign's word for an app without instances
            }
        }
        return new ArrayList<>(all.values());
    }

    private static Map<String, Object> seen(URI url, Map<String, String> metadata) {
        Map<String, Object> instance = new LinkedHashMap<>();
        instance.put("host", url.getHost());
        instance.put("port", url.getPort());
        instance.put("secure", url.getScheme().equals("https"));
        instance.put("metadata", metadata);
        instance.put("status", null);
        return instance;
    }
}
