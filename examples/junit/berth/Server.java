package berth;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.extension.ExtensionContext.Store.CloseableResource;

/** A sandbox, by the URL and the key of its control API. */
final class Server implements CloseableResource {
    // Proxies are not for it.
    private static final HttpClient HTTP = HttpClient.newBuilder()
            .version(HttpClient.Version.HTTP_1_1)
            .proxy(HttpClient.Builder.NO_PROXY)
            .build();

    private final String url;
    private final String key;
    /** Null if another program started it. */
    private final Process process;

    private Server(String url, String key, Process process) {
        this.url = url;
        this.key = key;
        this.process = process;
    }

    /** The sandbox of $BERTH_SANDBOX, or null. */
    static Server ofEnvironment() {
        String at = System.getenv("BERTH_SANDBOX");
        if (at == null) return null;
        return new Server(at.replaceAll("/+$", "") + "/control", System.getenv("BERTH_CONTROL_KEY"), null);
    }

    /** Another control API of the same sandboxes. */
    Server at(String url) {
        return new Server(url, key, null);
    }

    /** Starts `berth sandbox`. It stops at the end of its standard input, which also ends with this process. */
    static Server start(List<String> flags) {
        String berth = System.getenv().getOrDefault("BERTH", "npx berth");
        List<String> command = new ArrayList<>(List.of(berth.split(" +")));
        command.addAll(List.of("sandbox", "--port", "0", "--json", "--stop-with-stdin", "--clock", "virtual"));
        command.addAll(flags);
        try {
            Process process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
            BufferedReader lines =
                    new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
            String ready = lines.lines()
                    .filter(line -> line.startsWith("{\"origin\":"))
                    .findFirst()
                    .orElseThrow(() -> new IllegalStateException(
                            "`" + String.join(" ", command) + "` ended before it was ready"));
            Map<String, Object> control = Json.object(Json.object(Json.read(ready)).get("control"));
            return new Server((String) control.get("base_url"), (String) control.get("api_key"), process);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    Map<String, Object> control(String method, String path, Object body) {
        HttpRequest request = HttpRequest.newBuilder(URI.create(url + path))
                .header("Authorization", "Bearer " + key)
                .header("Content-Type", "application/json")
                .method(method, body == null ? BodyPublishers.noBody() : BodyPublishers.ofString(Json.write(body)))
                .build();
        try {
            HttpResponse<String> answer = HTTP.send(request, BodyHandlers.ofString());
            Map<String, Object> reply = Json.object(Json.read(answer.body()));
            if (answer.statusCode() < 400) return reply;
            throw new IllegalArgumentException(
                    method + " " + path + ": " + Json.object(reply.get("error")).get("message"));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(error);
        }
    }

    @Override
    public void close() throws Exception {
        if (process == null) return;
        process.getOutputStream().close();
        process.waitFor();
    }
}
