package readers;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.netflix.appinfo.InstanceInfo;
import de.codecentric.boot.admin.server.config.EnableAdminServer;
import de.codecentric.boot.admin.server.domain.entities.Instance;
import de.codecentric.boot.admin.server.domain.entities.InstanceRepository;
import de.codecentric.boot.admin.server.domain.values.Registration;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.cloud.client.ServiceInstance;
import org.springframework.cloud.client.loadbalancer.LoadBalancerUriTools;
import org.springframework.cloud.client.loadbalancer.Response;
import org.springframework.cloud.gateway.filter.GatewayFilterChain;
import org.springframework.cloud.gateway.filter.GlobalFilter;
import org.springframework.cloud.gateway.filter.ReactiveLoadBalancerClientFilter;
import org.springframework.cloud.gateway.route.RouteLocator;
import org.springframework.cloud.gateway.route.builder.RouteLocatorBuilder;
import org.springframework.cloud.gateway.support.ServerWebExchangeUtils;
import org.springframework.cloud.loadbalancer.core.ServiceInstanceListSupplier;
import org.springframework.cloud.loadbalancer.support.LoadBalancerClientFactory;
import org.springframework.cloud.netflix.eureka.EurekaServiceInstance;
import org.springframework.context.annotation.Bean;
import org.springframework.core.Ordered;
import org.springframework.core.env.Environment;
import org.springframework.web.server.ServerWebExchange;
import reactor.core.publisher.Mono;

/**
 * What Spring Cloud LoadBalancer, Spring Cloud Gateway and Spring Boot Admin find by Eureka, as a
 * line of JSON after "SEEN " whenever it changes. None of them calls an app but Boot Admin, which
 * asks each for its health.
 */
@SpringBootApplication(proxyBeanMethods = false)
@EnableAdminServer
public class SpringToday {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HttpClient HTTP = HttpClient.newHttpClient();

    @Bean
    RouteLocator routes(RouteLocatorBuilder builder, Environment environment) {
        RouteLocatorBuilder.Builder routes = builder.routes();
        for (String app : apps(environment)) {
            routes = routes.route(app, route -> route.path("/gateway/" + app).uri("lb://" + app));
        }
        return routes.build();
    }

    /** Answers with what the gateway would call, right after it has chosen an instance. */
    static class ChosenInstance implements GlobalFilter, Ordered {
        @Override
        public Mono<Void> filter(ServerWebExchange exchange, GatewayFilterChain chain) {
            URI url = exchange.getAttribute(ServerWebExchangeUtils.GATEWAY_REQUEST_URL_ATTR);
            Response<ServiceInstance> chosen =
                exchange.getAttribute(ServerWebExchangeUtils.GATEWAY_LOADBALANCER_RESPONSE_ATTR);
            byte[] body;
            try {
                body = JSON.writeValueAsBytes(seen(url, chosen.getServer().getMetadata(), null));
            } catch (java.io.IOException error) {
                return Mono.error(error);
            }
            var response = exchange.getResponse();
            return response.writeWith(Mono.just(response.bufferFactory().wrap(body)));
        }

        @Override
        public int getOrder() {
            return ReactiveLoadBalancerClientFilter.LOAD_BALANCER_CLIENT_FILTER_ORDER + 1;
        }
    }

    @Bean
    ChosenInstance chosenInstance() {
        return new ChosenInstance();
    }

    public static void main(String[] args) throws Exception {
        var context = SpringApplication.run(SpringToday.class, args);
        String port = context.getEnvironment().getRequiredProperty("local.server.port");
        List<String> apps = apps(context.getEnvironment());
        var balancers = context.getBean(LoadBalancerClientFactory.class);
        var admin = context.getBean(InstanceRepository.class);
        String before = "";
        while (true) {
            Map<String, Object> balanced = new LinkedHashMap<>();
            Map<String, Object> routed = new LinkedHashMap<>();
            for (String app : apps) {
                balanced.put(app, balanced(balancers, app));
                routed.put(app, routed(port, app));
            }
            String now = JSON.writeValueAsString(Map.of(
                "Spring Cloud LoadBalancer", balanced,
                "Spring Cloud Gateway", routed,
                "Spring Boot Admin", registered(admin)));
            if (!now.equals(before)) {
                System.out.println("SEEN " + now);
                System.out.flush();
                before = now;
            }
            Thread.sleep(200);
        }
    }

    private static List<String> apps(Environment environment) {
        return List.of(environment.getRequiredProperty("reader.apps").split(","));
    }

    private static List<Object> balanced(LoadBalancerClientFactory balancers, String app) {
        var supplier = balancers.getInstance(app, ServiceInstanceListSupplier.class);
        List<ServiceInstance> instances = supplier.get().next().block(Duration.ofSeconds(10));
        List<Object> all = new ArrayList<>();
        for (ServiceInstance instance : instances == null ? List.<ServiceInstance>of() : instances) {
            URI url = LoadBalancerUriTools.reconstructURI(instance, URI.create("http://" + app + "/"));
            InstanceInfo registered = ((EurekaServiceInstance) instance).getInstanceInfo();
            all.add(seen(url, instance.getMetadata(), registered.getStatus().name()));
        }
        return all;
    }

    /** Two calls in turn reach both instances of an app that has two. */
    private static Set<Object> routed(String port, String app) throws Exception {
        var request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + "/gateway/" + app));
        Set<Object> all = new LinkedHashSet<>();
        for (int call = 0; call < 2; call++) {
            var answer = HTTP.send(request.build(), HttpResponse.BodyHandlers.ofString());
            if (answer.statusCode() == 200) {
                all.add(JSON.readValue(answer.body(), Map.class));
            }
        }
        return all;
    }

    private static Map<String, List<Object>> registered(InstanceRepository admin) {
        Map<String, List<Object>> all = new LinkedHashMap<>();
        for (Instance instance : admin.findAll().collectList().block(Duration.ofSeconds(10))) {
            Registration registration = instance.getRegistration();
            if (instance.isRegistered()) {
                URI url = URI.create(registration.getServiceUrl());
                all.computeIfAbsent(registration.getName().toLowerCase(), name -> new ArrayList<>())
                    .add(seen(url, registration.getMetadata(), null));
            }
        }
        return all;
    }

    private static Map<String, Object> seen(URI url, Map<String, String> metadata, String status) {
        Map<String, Object> instance = new LinkedHashMap<>();
        instance.put("host", url.getHost());
        instance.put("port", url.getPort());
        instance.put("secure", url.getScheme().equals("https"));
        instance.put("metadata", metadata);
        instance.put("status", status);
        return instance;
    }
}
