/** For a schema that a process uses once: zod does not compile it first, which costs more than the one use. */
export const PARSED_ONCE = { jitless: true } as const;
