package berth;

import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.junit.jupiter.api.extension.ExtensionContext.Store.CloseableResource;

/** The sandbox of one test. */
public final class Sandbox implements CloseableResource {
    /** Where a server answers, and the key for it. */
    public record Access(String baseUrl, String apiKey) {}

    private final Server server;
    /** Its own control API. */
    private final Server own;
    private final Object id;
    private final Map<String, Object> account;

    /** Opens a sandbox in the server. */
    Sandbox(Server server) {
        Map<String, Object> opened = server.control("POST", "/sandboxes", Map.of());
        this.server = server;
        this.own = server.at((String) Json.object(opened.get("control")).get("base_url"));
        this.id = opened.get("id");
        this.account = Json.object(opened.get("account"));
    }

    /**
     * Sends a request to the control API (described at /control/openapi.json), such as ("POST", "/clock/freeze", null).
     *
     * @throws IllegalArgumentException if the sandbox refuses it
     */
    public Map<String, Object> control(String method, String path, Object body) {
        return own.control(method, path, body);
    }

    /** The access of this test at a provider, such as `provider-a` or `a`. */
    public Access provider(String name) {
        Map<String, Object> providers = Json.object(account.get("providers"));
        return access(name, providers.getOrDefault(name, providers.get("provider-" + name)));
    }

    /** The access of this test at the marketplace, with the flag `--marketplace`. */
    public Access marketplace() {
        return access("marketplace", account.get("marketplace"));
    }

    private static Access access(String name, Object at) {
        if (at == null) throw new IllegalArgumentException("the sandbox was started without " + name);
        return new Access((String) Json.object(at).get("base_url"), (String) Json.object(at).get("api_key"));
    }

    /** The time of the sandbox. */
    public Instant now() {
        return Instant.parse((String) control("GET", "/clock", null).get("now"));
    }

    /** Lets time pass. A client takes it for Thread.sleep. */
    public void advance(Duration by) {
        control("POST", "/clock/advance", Map.of("by", by.toMillis()));
    }

    /** Lets time pass until no work is in progress. */
    public void advanceUntilIdle() {
        control("POST", "/clock/advance-until-idle", null);
    }

    /** An armed fault. */
    public final class Fault {
        private final Object id;

        private Fault(Object id) {
            this.id = id;
        }

        /** How often it has triggered. */
        public int hits() {
            return Json.objects(control("GET", "/faults?all=true", null).get("faults")).stream()
                    .filter(fault -> fault.get("id").equals(id))
                    .mapToInt(fault -> ((Number) fault.get("hits")).intValue())
                    .sum();
        }
    }

    public Fault fault(String name) {
        return fault(name, Map.of());
    }

    /**
     * Arms a fault: fault("http-500", Map.of("route", "POST /instances", "times", 2)).
     * docs/sandbox-faults.md lists all. It must trigger, unless it has a `probability` or `must_trigger` is false.
     */
    public Fault fault(String name, Map<String, ?> options) {
        Map<String, Object> arming = new HashMap<>(options);
        arming.put("fault", name);
        arming.putIfAbsent("must_trigger", !options.containsKey("probability"));
        return new Fault(control("POST", "/faults", arming).get("id"));
    }

    /** Sets how transitions of machines and volumes end: transitions("polls", Map.of("polls", 3, "phase", "boot")). */
    public void transitions(String mode, Map<String, ?> options) {
        Map<String, Object> setting = new HashMap<>(options);
        setting.put("mode", mode);
        control("POST", "/transitions", setting);
    }

    /** The requests of the client, with their answers: journal(Map.of("operation", "createInstance")). */
    public List<Map<String, Object>> journal(Map<String, ?> where) {
        String query = where.entrySet().stream()
                .map(field -> field.getKey() + "=" + encoded(field.getValue()))
                .collect(Collectors.joining("&"));
        return Json.objects(control("GET", "/journal?" + query, null).get("entries"));
    }

    public void assertJournal(String assertion) {
        assertJournal(assertion, Map.of());
    }

    /**
     * Asserts something of the requests of the client: assertJournal("requests", Map.of("where", Map.of("method",
     * "DELETE"), "exactly", 1)). The control API's POST /journal/assertions describes all assertions.
     */
    public void assertJournal(String assertion, Map<String, ?> options) {
        Map<String, Object> asked = new HashMap<>(options);
        asked.put("assert", assertion);
        Map<String, Object> reply = control("POST", "/journal/assertions", Map.of("assertions", List.of(asked)));
        for (Map<String, Object> result : Json.objects(reply.get("results")))
            if (result.get("holds").equals(false)) throw new AssertionError(assertion + ": " + result.get("message"));
    }

    /**
     * Asserts that the client obeys every rule of the verdict, but for accepted ones such as "sends-region".
     */
    public final void assertVerdict(String... accepted) {
        List<Map<String, Object>> rules = Json.objects(control("GET", "/verdict", null).get("rules"));
        boolean wasTested = rules.stream().anyMatch(rule -> !rule.get("result").equals("not_tested"));
        String failed = rules.stream()
                .filter(rule -> rule.get("result").equals("fail") && !List.of(accepted).contains(rule.get("rule")))
                .flatMap(rule -> Json.objects(rule.get("findings")).stream()
                        .map(finding -> "\n  " + rule.get("rule") + ": " + finding.get("message")))
                .collect(Collectors.joining());
        if (!wasTested) failed = "\n  no rule was tested";
        if (!failed.isEmpty()) throw new AssertionError("The client fails the verdict:" + failed);
    }

    /** Ends the sandbox. */
    @Override
    public void close() {
        String untriggered = Json.objects(server.control("DELETE", "/sandboxes/" + id, null).get("untriggered")).stream()
                .map(fault -> "\n  " + fault.get("fault") + " " + Json.write(fault.get("options")) + ", after "
                        + fault.get("seen") + " occasions")
                .collect(Collectors.joining());
        if (untriggered.isEmpty()) return;
        throw new AssertionError(
                "The test armed faults that never triggered (\"must_trigger\": false allows that):" + untriggered);
    }

    private static String encoded(Object text) {
        return URLEncoder.encode(String.valueOf(text), StandardCharsets.UTF_8);
    }
}
