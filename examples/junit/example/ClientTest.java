package example;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import berth.BerthSandbox;
import berth.Sandbox;
import example.Client.Machine;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@BerthSandbox({"--providers", "d", "--timing", "boot=50s-90s"})
class ClientTest {
    private static final String SSH_KEY =
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBVvbPHlyOu4Rzn6yIy3N+mIZLDBkd5yTJPYJVgSuSMK training";

    /** The client with the key of this test's sandbox. It pauses in the time of the sandbox. */
    static Client clientOf(Sandbox sandbox) {
        Sandbox.Access at = sandbox.provider("d");
        return new Client(at.baseUrl(), at.apiKey(), sandbox::advance);
    }

    static Machine rent(Client client, String name) {
        return rent(client, name, name);
    }

    private static Machine rent(Client client, String name, String idempotencyKey) {
        Map<String, Object> offer = client.offers().get(0);
        Map<String, Object> order = Map.of(
                "configuration_id", offer.get("id"),
                "region", ((List<?>) offer.get("regions")).get(0),
                "name", name,
                "ssh_keys", List.of(SSH_KEY));
        return client.create(order, idempotencyKey);
    }

    // Isolation

    /** The repetitions run at the same time: junit-platform.properties. */
    @RepeatedTest(4)
    void testsAtTheSameTimeSeeOnlyTheirOwnMachines(Sandbox sandbox, RepetitionInfo repetition) {
        Client client = clientOf(sandbox);
        Machine machine = client.waitUntilOnline(rent(client, "machine-" + repetition.getCurrentRepetition()));
        assertEquals(List.of(machine), client.machines());
    }

    // Clock

    @Test
    void waitsForABootInTheTimeOfTheSandbox(Sandbox sandbox) {
        Client client = clientOf(sandbox);
        Instant began = sandbox.now();
        assertEquals("ONLINE", client.waitUntilOnline(rent(client, "first")).status());
        assertTrue(Duration.between(began, sandbox.now()).toSeconds() >= 50);
    }

    // Faults

    @ParameterizedTest
    @ValueSource(strings = {"answer-lost", "request-lost", "http-429", "http-504", "truncated-json"})
    void rentsOneMachineAlthoughTheCreateMeets(String fault, Sandbox sandbox) {
        Client client = clientOf(sandbox);
        Sandbox.Fault armed = sandbox.fault(fault, Map.of("route", "POST /instances", "times", 2));
        Machine machine = rent(client, fault);
        assertEquals(2, armed.hits());
        assertEquals("ONLINE", client.waitUntilOnline(machine).status());
        sandbox.assertJournal("never_created_twice");
    }

    @ParameterizedTest
    @ValueSource(strings = {"false-404", "http-500", "html-page", "half-body-reset", "unknown-status"})
    void keepsItsMachineAlthoughAPollMeets(String fault, Sandbox sandbox) {
        Client client = clientOf(sandbox);
        Machine machine = rent(client, fault);
        sandbox.fault(fault, Map.of("instance", machine.id()));
        assertEquals("ONLINE", client.waitUntilOnline(machine).status());
    }

    @Test
    void givesUpAMachineWhoseBootFails(Sandbox sandbox) {
        sandbox.fault("boot-fails");
        Client client = clientOf(sandbox);
        assertEquals("ERROR", client.waitUntilOnline(rent(client, "failing")).status());
    }

    // Claims

    @Test
    void pollsInTimeLeavesNothingAndObeysTheContract(Sandbox sandbox) {
        Client client = clientOf(sandbox);
        sandbox.fault("http-503", Map.of("route", "GET /instances/{id}"));
        client.destroy(client.waitUntilOnline(rent(client, "whole-life")));
        sandbox.assertJournal("polled_at_least_every", Map.of("seconds", 30));
        sandbox.assertJournal("all_destroyed");
        sandbox.assertJournal("requests", Map.of("where", Map.of("method", "DELETE"), "exactly", 1));
        sandbox.assertVerdict();
    }

    @Test
    void aClientWithoutAnIdempotencyKeyRentsTwo(Sandbox sandbox) {
        sandbox.fault("answer-lost", Map.of("route", "POST /instances"));
        rent(clientOf(sandbox), "twice", null);
        AssertionError twice =
                assertThrows(AssertionError.class, () -> sandbox.assertJournal("never_created_twice"));
        assertTrue(twice.getMessage().contains("never_created_twice: the same create made"), twice.getMessage());
    }
}
