import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { z } from 'zod';

const schema = z
  .array(
    z.strictObject({
      test: z.string().min(1),
      file: z.string().min(1),
      failure: z.string().min(1),
      date: z.iso.date(),
      seed: z.union([z.string(), z.number()]),
    }),
  )
  .max(3);

/**
 * The titles of test/quarantine.yaml: tests that were red and green on the same commit.
 *
 * @throws {Error} if there are more than three, or one lacks a field.
 */
export function readQuarantine(
  text = readFileSync(new URL('../quarantine.yaml', import.meta.url), 'utf8'),
): string[] {
  return schema.parse(parse(text)).map(({ test }) => test);
}

/** Matches the titles of all other tests; undefined if there are none in quarantine. */
export function notInQuarantine(titles: readonly string[]): RegExp | undefined {
  if (titles.length === 0) return undefined;
  return new RegExp(
    `^(?!.*(?:${titles.map((title) => title.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('|')})$)`,
  );
}
