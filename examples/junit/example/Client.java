package example;

import berth.Json;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;

/** The client under test: rents a machine, waits until it is ONLINE, and destroys it. */
class Client {
    private static final HttpClient HTTP =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private static final Duration POLL = Duration.ofSeconds(15);
    private static final int ATTEMPTS = 5;
    /** After so many answers 404 in a row a machine counts as gone: one of them may be wrong. */
    private static final int MISSES = 2;

    record Machine(String id, String region, String status) {
        static Machine of(Map<String, Object> json) {
            return new Machine((String) json.get("id"), (String) json.get("region"), (String) json.get("status"));
        }

        String path() {
            return "/instances/" + id + "?region=" + region;
        }
    }

    /** The answer says nothing of the machine: the client asks again. */
    private static class NoAnswer extends Exception {
        NoAnswer(Object why) {
            super(String.valueOf(why));
        }
    }

    static class Refused extends RuntimeException {
        final int status;

        Refused(int status) {
            super("the provider refuses: " + status);
            this.status = status;
        }
    }

    private final String baseUrl;
    private final String apiKey;
    private final Consumer<Duration> sleep;

    Client(String baseUrl, String apiKey, Consumer<Duration> sleep) {
        this.baseUrl = baseUrl;
        this.apiKey = apiKey;
        this.sleep = sleep;
    }

    List<Map<String, Object>> offers() {
        return Json.objects(repeat("GET", "/availability", null, null).get("configurations"));
    }

    List<Machine> machines() {
        Object instances = repeat("GET", "/instances", null, null).get("instances");
        return Json.objects(instances).stream().map(Machine::of).toList();
    }

    /** With the same key a provider makes one machine, however often it is asked. */
    Machine create(Map<String, ?> order, String idempotencyKey) {
        return Machine.of(repeat("POST", "/instances", order, idempotencyKey));
    }

    /** Returns the machine once it is ONLINE or ERROR, or null if it is gone. */
    Machine waitUntilOnline(Machine machine) {
        return poll(machine, Set.of("ONLINE", "ERROR"));
    }

    /** Returns once the machine is gone. */
    void destroy(Machine machine) {
        try {
            repeat("DELETE", machine.path(), null, null);
        } catch (Refused refused) {
            if (refused.status != 404) throw refused;
            return;
        }
        poll(machine, Set.of());
    }

    private Machine poll(Machine machine, Set<String> ends) {
        for (int misses = 0; misses < MISSES; ) {
            sleep.accept(POLL);
            try {
                Machine read = Machine.of(ask("GET", machine.path(), null, null));
                if (ends.contains(read.status)) return read;
                misses = 0;
            } catch (NoAnswer again) {
                continue;
            } catch (Refused refused) {
                if (refused.status != 404) throw refused;
                misses++;
            }
        }
        return null;
    }

    private Map<String, Object> repeat(String method, String path, Map<String, ?> body, String key) {
        for (int attempt = 1; ; attempt++) {
            try {
                return ask(method, path, body, key);
            } catch (NoAnswer none) {
                if (attempt == ATTEMPTS) throw new IllegalStateException(none);
                sleep.accept(Duration.ofSeconds(1L << attempt));
            }
        }
    }

    private Map<String, Object> ask(String method, String path, Map<String, ?> body, String key) throws NoAnswer {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(baseUrl + path))
                .header("Authorization", "Bearer " + apiKey)
                .header("Content-Type", "application/json")
                .method(method, body == null ? BodyPublishers.noBody() : BodyPublishers.ofString(Json.write(body)));
        if (key != null) request.header("Idempotency-Key", key);
        try {
            HttpResponse<String> answer = HTTP.send(request.build(), BodyHandlers.ofString());
            int status = answer.statusCode();
            answer.headers().firstValue("Retry-After").map(Long::valueOf).map(Duration::ofSeconds).ifPresent(sleep);
            if (status == 429 || status >= 500) throw new NoAnswer("it answers " + status);
            if (status >= 400) throw new Refused(status);
            return Json.object(Json.read(answer.body()));
        } catch (IOException | IllegalArgumentException error) {
            throw new NoAnswer(error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(error);
        }
    }
}
