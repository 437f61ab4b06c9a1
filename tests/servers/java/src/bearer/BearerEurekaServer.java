package bearer;

import java.io.InputStream;
import java.security.interfaces.RSAPublicKey;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.cloud.netflix.eureka.server.EnableEurekaServer;
import org.springframework.context.annotation.Bean;
import org.springframework.core.io.Resource;
import org.springframework.http.HttpMethod;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.converter.RsaKeyConverters;
import org.springframework.security.oauth2.jwt.NimbusJwtDecoder;
import org.springframework.security.web.SecurityFilterChain;

/**
 * A Eureka server that is an OAuth2 resource server, as in Spring Cloud Services: each call needs a JWT, which the key in
 * `eureka-under-test.token-key` verifies, and a write also the scope `eureka.write`. CSRF protection is on, and leaves
 * calls with a token alone.
 */
@SpringBootApplication
@EnableEurekaServer
public class BearerEurekaServer {
    public static void main(String[] args) {
        SpringApplication.run(BearerEurekaServer.class, args);
    }

    @Bean
    SecurityFilterChain bearerTokens(HttpSecurity http, @Value("${eureka-under-test.token-key}") Resource key)
            throws Exception {
        RSAPublicKey publicKey;
        try (InputStream pem = key.getInputStream()) {
            publicKey = RsaKeyConverters.x509().convert(pem);
        }
        NimbusJwtDecoder decoder = NimbusJwtDecoder.withPublicKey(publicKey).build();
        return http.authorizeHttpRequests(requests -> requests
                        .requestMatchers(HttpMethod.GET).authenticated()
                        .anyRequest().hasAuthority("SCOPE_eureka.write"))
                .oauth2ResourceServer(server -> server.jwt(jwt -> jwt.decoder(decoder)))
                .build();
    }
}
