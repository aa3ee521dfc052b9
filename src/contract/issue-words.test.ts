import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { toSentence } from './errors.ts';
import { toIssues } from './issue-words.ts';

/** The messages that a client gets for `data`. */
function messagesFor(schema: z.ZodType, data: unknown): string[] {
  const result = schema.safeParse(data);
  return result.success ? [] : toIssues({ ...result, data }).map(toSentence);
}

const field = (schema: z.ZodType) => z.strictObject({ name: schema });

describe('messages about an invalid field', () => {
  it.each<[z.ZodType, unknown, string]>([
    [z.string(), undefined, 'name is required: a string'],
    [z.enum(['a', 'b']), undefined, 'name is required: one of "a", "b"'],
    [z.array(z.string()), undefined, 'name is required: a list'],
    [z.union([z.string(), z.number()]), undefined, 'name is required: a string, or a number'],
    [z.string(), 7, 'name: expected a string, got a number'],
    [z.string(), ['secret'], 'name: expected a string, got a list'],
    [z.string(), null, 'name: expected a string, got null'],
    [z.number(), '7', 'name: expected a number, got a string'],
    [z.number(), Number.NaN, 'name: expected a number, got no number'],
    [z.int(), 1.5, 'name: expected a whole number'],
    [z.boolean(), 'yes', 'name: expected true or false, got a string'],
    [z.object({}), 'x', 'name: expected an object, got a string'],
    [z.record(z.string(), z.string()), [], 'name: expected an object, got a list'],
    [z.enum(['a', 'b']), 'c', 'name: expected one of "a", "b"'],
    [z.literal('a'), 'c', 'name: expected "a"'],
    [z.string().min(1), '', 'name: expected at least 1 character'],
    [z.string().max(3), 'secret', 'name: expected at most 3 characters'],
    [z.array(z.string()).min(2), ['x'], 'name: expected at least 2 entries'],
    [z.array(z.string()).max(1), ['x', 'y'], 'name: expected at most 1 entry'],
    [z.number().min(3), 2, 'name: expected at least 3'],
    [z.number().positive(), 0, 'name: expected more than 0'],
    [z.number().lt(5), 5, 'name: expected less than 5'],
    [z.number().multipleOf(5), 7, 'name: expected a multiple of 5'],
    [z.string().regex(/^x+$/), 'secret', 'name: expected text that matches /^x+$/'],
    [z.string().regex(/^x+$/, 'expected only x'), 'secret', 'name: expected only x'],
    [z.iso.datetime(), 'secret', 'name: expected a time in ISO 8601 and UTC, such as "2026-01-31T12:00:00Z"'],
    [z.email(), 'secret', 'name: expected an e-mail address'],
    [z.union([z.string(), z.array(z.string())]), 7, 'name: expected a string, or a list'],
    [z.string().refine(() => false, 'expected another name'), 'secret', 'name: expected another name'],
  ])('%#: %o', (schema, value, sentence) => {
    const data = value === undefined ? {} : { name: value };
    expect(messagesFor(field(schema), data)).toEqual([sentence]);
  });

  it('never repeats the value', () => {
    for (const schema of [z.number(), z.string().max(3), z.enum(['a']), z.email(), z.url()])
      expect(messagesFor(field(schema), { name: 'the-secret' }).join()).not.toContain('the-secret');
  });

  it('reports one problem for a value of the wrong type, and names each path', () => {
    const schema = z.object({ a: z.array(z.object({ b: z.string().min(3) })), c: z.string() });
    expect(messagesFor(schema, { a: [{ b: 7 }, { b: 'x' }] })).toEqual([
      'a[0].b: expected a string, got a number',
      'a[1].b: expected at least 3 characters',
      'c is required: a string',
    ]);
  });

  it('is about the whole value if there is no field', () => {
    expect(messagesFor(z.object({}), [])).toEqual(['expected an object, got a list']);
  });
});
