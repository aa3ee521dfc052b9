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
 * Gives the tests of a class parameters of type {@link Sandbox}: each is a sandbox of its own, with its own clock, in the
 * `berth sandbox` that all tests with these flags share. It ends with its test; a fault that had to trigger and did not
 * fails the test.
 */
@Inherited
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@ExtendWith(BerthSandbox.Extension.class)
public @interface BerthSandbox {
    /** The flags of `berth sandbox`, such as {"--providers", "a,d"}. */
    String[] value() default {};

    class Extension implements ParameterResolver {
        @Override
        public boolean supportsParameter(ParameterContext parameter, ExtensionContext test) {
            return parameter.getParameter().getType() == Sandbox.class;
        }

        @Override
        public Sandbox resolveParameter(ParameterContext parameter, ExtensionContext test) {
            Sandbox sandbox = new Sandbox(shared(test, flagsOf(test.getRequiredTestClass())));
            // JUnit closes it at the end of the test.
            test.getStore(Namespace.create(BerthSandbox.class)).put(sandbox, sandbox);
            return sandbox;
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
    }
}
