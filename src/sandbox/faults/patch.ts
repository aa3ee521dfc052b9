import { applyPatch } from 'rfc6902';
import { z } from 'zod';
import { changeEach, isObject } from './rewrite.ts';

const pointer = z.string().regex(/^(\/.*)?$/s, 'must be a JSON Pointer, such as /instances/0/status');
const value = z.json();

const operation = z.discriminatedUnion('op', [
  z.strictObject({ op: z.enum(['add', 'replace', 'test']), path: pointer, value }),
  z.strictObject({ op: z.literal('remove'), path: pointer }),
  z.strictObject({ op: z.enum(['move', 'copy']), path: pointer, from: pointer }),
]);
type Operation = z.infer<typeof operation>;

/** How an answer is changed: first by `body`, then by `merge`, then by `patch`. */
export const patchShape = {
  merge: value.optional().meta({ description: 'A JSON Merge Patch (RFC 7396) of the JSON body.' }),
  patch: z.array(operation).optional().meta({ description: 'A JSON Patch (RFC 6902) of the JSON body.' }),
  status: z.int().min(200).max(599).optional().meta({ description: 'The status instead.' }),
  headers: z
    .record(z.string(), z.string().nullable())
    .optional()
    .meta({ description: 'Headers that are set; null removes one.' }),
  body: z.string().optional().meta({ description: 'The bytes of the body instead, as text.' }),
};
type Patch = z.infer<z.ZodObject<typeof patchShape>>;

/** These statuses have no body. */
const WITHOUT_BODY: readonly number[] = [204, 205, 304];

/**
 * Returns the answer as the patch changes it. With a `resource`, merge and patch change that resource, single or listed;
 * without one the whole body. If they do not fit the body, the answer is a 500 that says why.
 */
export async function patched(response: Response, patch: Patch, resource?: string): Promise<Response> {
  const headers = new Headers(response.headers);
  headers.delete('content-length');
  for (const [name, text] of Object.entries(patch.headers ?? {}))
    if (text === null) headers.delete(name);
    else headers.set(name, text);
  const { status = response.status } = patch;
  const text = patch.body ?? (await response.text());
  try {
    const body = changesJson(patch) ? JSON.stringify(changedJson(text, patch, resource)) : text;
    return new Response(WITHOUT_BODY.includes(status) ? null : body, { status, headers });
  } catch (error) {
    const message = `answer-patch does not fit this answer: ${error instanceof Error ? error.message : error}`;
    return Response.json({ error: { code: 'internal', message } }, { status: 500 });
  }
}

const changesJson = ({ merge, patch }: Patch): boolean => merge !== undefined || patch !== undefined;

function changedJson(text: string, { merge, patch = [] }: Patch, resource: string | undefined): unknown {
  const json: unknown = JSON.parse(text);
  const change = (shown: unknown): unknown =>
    jsonPatched(merge === undefined ? shown : mergePatched(shown, merge), patch);
  if (resource === undefined || !isObject(json)) return change(json);
  return changeEach(json, resource, (shown) => change(shown) as Record<string, unknown>);
}

/** RFC 7396: null removes a member. */
function mergePatched(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const merged = new Map(Object.entries(isObject(target) ? target : {}));
  for (const [name, change] of Object.entries(patch))
    if (change === null) merged.delete(name);
    else merged.set(name, mergePatched(merged.get(name), change));
  return Object.fromEntries(merged);
}

/** @throws {Error} at the first operation that does not fit */
function jsonPatched(json: unknown, operations: readonly Operation[]): unknown {
  // The library cannot replace the whole of what it is given.
  const whole = { json: structuredClone(json) };
  for (const each of operations) {
    const within = {
      ...each,
      path: `/json${each.path}`,
      ...('from' in each && { from: `/json${each.from}` }),
    } as Operation;
    const [error] = applyPatch(whole, [structuredClone(within)]);
    if (error) throw new Error(`${each.op} ${each.path}: ${REASONS[error.name] ?? error.message}`);
  }
  return whole.json;
}

const REASONS: Readonly<Record<string, string>> = {
  MissingError: 'there is nothing at that place',
  TestError: 'another value is at that place',
};
