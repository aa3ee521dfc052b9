package berth;

import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ExtensionContext.Store;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * Gives the tests of a class a parameter of type {@link Sandbox}. All tests share the `berth sandbox` with these flags; each
 * parameter has an account of its own in it. {@link Own} starts one for that parameter only. What a test arms and creates
 * ends with it; a fault that had to strike and did not fails it.
 */
@Inherited
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@ExtendWith(BerthSandbox.Extension.class)
public @interface BerthSandbox {
    /** The flags of `berth sandbox`, such as {"--providers", "a,d"}. */
    String[] value() default {};

    /** The parameter has a sandbox of its own, with its own clock. */
    @Target(ElementType.PARAMETER)
    @Retention(RetentionPolicy.RUNTIME)
    @interface Own {}

    class Extension implements ParameterResolver {
        @Override
        public boolean supportsParameter(ParameterContext parameter, ExtensionContext test) {
            return parameter.getParameter().getType() == Sandbox.class;
        }

        @Override
        public Sandbox resolveParameter(ParameterContext parameter, ExtensionContext test) {
            List<String> flags = flagsOf(test.getRequiredTestClass());
            Sandbox sandbox = parameter.isAnnotated(Own.class)
                    ? new Sandbox(kept(test, Server.start(flags)))
                    : new Sandbox(shared(test, flags));
            return kept(test, sandbox);
        }

        private static Server shared(ExtensionContext test, List<String> flags) {
            Server running = Server.ofEnvironment();
            if (running != null) return running;
            Store all = test.getRoot().getStore(Namespace.create(BerthSandbox.class));
            return all.getOrComputeIfAbsent(flags, Server::start, Server.class);
        }

        /** The annotation of the class, or of the class around it. */
        private static List<String> flagsOf(Class<?> test) {
            BerthSandbox own = test.getAnnotation(BerthSandbox.class);
            return own == null ? flagsOf(test.getEnclosingClass()) : Arrays.asList(own.value());
        }

        /** JUnit closes it at the end of the test, and the latest first. */
        private static <T extends Store.CloseableResource> T kept(ExtensionContext test, T resource) {
            test.getStore(Namespace.create(BerthSandbox.class)).put(resource, resource);
            return resource;
        }
    }
}
