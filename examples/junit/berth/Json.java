package berth;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** JSON as maps, lists, strings, longs, doubles, booleans and null. Java's standard library has none. */
public final class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    /** @throws IllegalArgumentException if the text is no JSON */
    public static Object read(String text) {
        Json json = new Json(text);
        Object value = json.value();
        if (json.next() != '\0') throw json.unexpected();
        return value;
    }

    @SuppressWarnings("unchecked")
    public static Map<String, Object> object(Object value) {
        return (Map<String, Object>) value;
    }

    @SuppressWarnings("unchecked")
    public static List<Map<String, Object>> objects(Object value) {
        return (List<Map<String, Object>>) value;
    }

    public static String write(Object value) {
        if (value instanceof Map<?, ?> map)
            return map.entrySet().stream()
                    .map(field -> write(field.getKey()) + ":" + write(field.getValue()))
                    .collect(Collectors.joining(",", "{", "}"));
        if (value instanceof List<?> list)
            return list.stream().map(Json::write).collect(Collectors.joining(",", "[", "]"));
        if (!(value instanceof String string)) return String.valueOf(value);
        return string.chars()
                .mapToObj(c -> c < ' ' || c == '"' || c == '\\' ? String.format("\\u%04x", c) : Character.toString(c))
                .collect(Collectors.joining("", "\"", "\""));
    }

    private Object value() {
        return switch (next()) {
            case '{' -> map();
            case '[' -> list();
            case '"' -> string();
            default -> word();
        };
    }

    private Map<String, Object> map() {
        Map<String, Object> map = new LinkedHashMap<>();
        for (at++; next() != '}'; comma('}')) {
            String name = string();
            if (next() != ':') throw unexpected();
            at++;
            map.put(name, value());
        }
        at++;
        return map;
    }

    private List<Object> list() {
        List<Object> list = new ArrayList<>();
        for (at++; next() != ']'; comma(']')) list.add(value());
        at++;
        return list;
    }

    private String string() {
        if (next() != '"') throw unexpected();
        StringBuilder string = new StringBuilder();
        for (at++; at < text.length() && text.charAt(at) != '"'; at++)
            string.append(text.charAt(at) == '\\' ? escaped() : text.charAt(at));
        if (at++ == text.length()) throw unexpected();
        return string.toString();
    }

    private char escaped() {
        at++;
        if (text.startsWith("u", at) && at + 4 < text.length()) {
            at += 4;
            return (char) Integer.parseInt(text, at - 3, at + 1, 16);
        }
        int which = at < text.length() ? "\"\\/bfnrt".indexOf(text.charAt(at)) : -1;
        if (which < 0) throw unexpected();
        return "\"\\/\b\f\n\r\t".charAt(which);
    }

    private Object word() {
        int from = at;
        while (at < text.length() && isOfWord(text.charAt(at))) at++;
        String word = text.substring(from, at);
        return switch (word) {
            case "true" -> true;
            case "false" -> false;
            case "null" -> null;
            default -> number(word);
        };
    }

    private static boolean isOfWord(char c) {
        return Character.isLetterOrDigit(c) || "+-.".indexOf(c) >= 0;
    }

    private Number number(String word) {
        if (word.matches("-?\\d{1,18}")) return Long.valueOf(word);
        if (word.matches("-?\\d+(\\.\\d+)?([eE][+-]?\\d+)?")) return Double.valueOf(word);
        at -= word.length();
        throw unexpected();
    }

    private void comma(char end) {
        if (next() == ',') at++;
        else if (next() != end) throw unexpected();
    }

    /** The next character that is no space; NUL at the end. */
    private char next() {
        while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) at++;
        return at < text.length() ? text.charAt(at) : '\0';
    }

    private IllegalArgumentException unexpected() {
        return new IllegalArgumentException(
                at < text.length() ? "no JSON: unexpected " + text.charAt(at) + " at " + at : "no JSON: it ends early");
    }
}
