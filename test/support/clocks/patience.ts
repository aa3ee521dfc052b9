/**
 * How long a test waits for what must come, in milliseconds: a last resort against hanging, however much else the
 * machine has to do. Vitest's own limits are longer, so that the error says what was waited for.
 */
export const PATIENCE_MS = 120_000;
