package example;

import berth.BerthSandbox;
import berth.Sandbox;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Tests that must fail: other-languages.long.test.ts runs them beside examples/junit. */
@BerthSandbox({"--providers", "d", "--timing", "boot=50s-90s"})
class FailingTest {
    @Test
    void aFaultThatNeverTriggers(Sandbox sandbox) {
        sandbox.fault("http-500", Map.of("skip", 3));
    }

    @Test
    void aMachineThatIsLeft(Sandbox sandbox) {
        ClientTest.rent(ClientTest.clientOf(sandbox), "left");
        sandbox.assertJournal("all_destroyed");
    }

    @Test
    void aVerdictThatFails(Sandbox sandbox) {
        ClientTest.rent(ClientTest.clientOf(sandbox), "left");
        sandbox.advance(Duration.ofMinutes(1));
        sandbox.assertVerdict();
    }

    @Test
    void aRequestThatTheSandboxRefuses(Sandbox sandbox) {
        sandbox.fault("http-600");
    }
}
