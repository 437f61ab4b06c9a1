package secured;

import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.cloud.netflix.eureka.server.EnableEurekaServer;
import org.springframework.context.annotation.Bean;
import org.springframework.security.config.Customizer;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.web.SecurityFilterChain;

/**
 * A Eureka server that asks for basic authentication; no CSRF token, as the Eureka documentation says.
 * With `eureka-under-test.csrf=on` it asks for one, which is what Spring Security does of itself.
 */
@SpringBootApplication
@EnableEurekaServer
public class SecuredEurekaServer {
    public static void main(String[] args) {
        SpringApplication.run(SecuredEurekaServer.class, args);
    }

    @Bean
    SecurityFilterChain basicAuthentication(
            HttpSecurity http, @Value("${eureka-under-test.csrf:off}") String csrfProtection) throws Exception {
        if (csrfProtection.equals("off")) {
            http.csrf(csrf -> csrf.disable());
        }
        return http.authorizeHttpRequests(requests -> requests.anyRequest().authenticated())
                .httpBasic(Customizer.withDefaults())
                .build();
    }
}
