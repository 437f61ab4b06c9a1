package secured;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.cloud.netflix.eureka.server.EnableEurekaServer;
import org.springframework.context.annotation.Bean;
import org.springframework.security.config.Customizer;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.web.SecurityFilterChain;

/** A Eureka server that asks for basic authentication; no CSRF token, as the Eureka documentation says. */
@SpringBootApplication
@EnableEurekaServer
public class SecuredEurekaServer {
    public static void main(String[] args) {
        SpringApplication.run(SecuredEurekaServer.class, args);
    }

    @Bean
    SecurityFilterChain basicAuthentication(HttpSecurity http) throws Exception {
        return http.csrf(csrf -> csrf.disable())
                .authorizeHttpRequests(requests -> requests.anyRequest().authenticated())
                .httpBasic(Customizer.withDefaults())
                .build();
    }
}
