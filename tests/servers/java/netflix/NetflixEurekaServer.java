package netflix;

import com.netflix.eureka.EurekaBootStrap;
import com.netflix.eureka.ServerRequestAuthFilter;
import com.netflix.eureka.StatusFilter;
import com.sun.jersey.api.container.filter.GZIPContentEncodingFilter;
import com.sun.jersey.spi.container.servlet.ServletContainer;
import java.io.File;
import java.net.InetAddress;
import javax.servlet.Filter;
import org.apache.catalina.Context;
import org.apache.catalina.servlets.DefaultServlet;
import org.apache.catalina.startup.Tomcat;
import org.apache.tomcat.util.descriptor.web.FilterDef;
import org.apache.tomcat.util.descriptor.web.FilterMap;

/**
 * Netflix's own server, without Spring: its war is in no registry, so this sets up in a Tomcat what the
 * war's web.xml does, at the war's address, /eureka/v2. The pages for people are left out.
 */
public class NetflixEurekaServer {
    /** Arguments: the address to listen at, and the port. The rest are system properties. */
    public static void main(String[] args) throws Exception {
        String host = InetAddress.getLocalHost().getHostName();
        if (System.getProperty("eureka.serviceUrl.default") == null) {
            // A server without peers names itself, by the name that it gives itself.
            System.setProperty("eureka.serviceUrl.default", "http://" + host + ":" + args[1] + "/eureka/v2/");
        }
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(new File("tomcat").getAbsolutePath());
        tomcat.getConnector().setProperty("address", args[0]);
        tomcat.getConnector().setPort(Integer.parseInt(args[1]));
        Context context = tomcat.addContext("/eureka", null);
        context.addApplicationListener(EurekaBootStrap.class.getName());
        addFilter(context, StatusFilter.class);
        addFilter(context, ServerRequestAuthFilter.class);
        FilterDef jersey = addFilter(context, ServletContainer.class);
        jersey.addInitParameter("com.sun.jersey.config.property.packages", "com.sun.jersey;com.netflix");
        String zipped = GZIPContentEncodingFilter.class.getName();
        jersey.addInitParameter("com.sun.jersey.spi.container.ContainerRequestFilters", zipped);
        jersey.addInitParameter("com.sun.jersey.spi.container.ContainerResponseFilters", zipped);
        Tomcat.addServlet(context, "default", new DefaultServlet());
        context.addServletMappingDecoded("/", "default");
        tomcat.start();
        tomcat.getServer().await();
    }

    private static FilterDef addFilter(Context context, Class<? extends Filter> filter) {
        FilterDef definition = new FilterDef();
        definition.setFilterName(filter.getSimpleName());
        definition.setFilterClass(filter.getName());
        context.addFilterDef(definition);
        FilterMap map = new FilterMap();
        map.setFilterName(filter.getSimpleName());
        map.addURLPattern("/*");
        context.addFilterMap(map);
        return definition;
    }
}
