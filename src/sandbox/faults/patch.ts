import { z } from 'zod';
import { changeEach, isObject } from './rewrite.ts';

/** How an answer is changed: first by `body`, then by `merge`. */
export const patchShape = {
  merge: z.json().optional().meta({ description: 'A JSON Merge Patch (RFC 7396) of the JSON body.' }),
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
 * Returns the answer as the patch changes it. With a `resource`, merge changes that resource, single or listed; without
 * one the whole body. If it does not fit the body, the answer is a 500 that says why.
 */
export async function patched(response: Response, patch: Patch, resource?: string): Promise<Response> {
  const headers = new Headers(response.headers);
  headers.delete('content-length');
  for (const [name, text] of Object.entries(patch.headers ?? {}))
    if (text === null) headers.delete(name);
    else headers.set(name, text);
  const { status = response.status, merge } = patch;
  const text = patch.body ?? (await response.text());
  try {
    const body = merge === undefined ? text : JSON.stringify(merged(JSON.parse(text), merge, resource));
    return new Response(WITHOUT_BODY.includes(status) ? null : body, { status, headers });
  } catch (error) {
    const message = `answer-patch does not fit this answer: ${error instanceof Error ? error.message : error}`;
    return Response.json({ error: { code: 'internal', message } }, { status: 500 });
  }
}

function merged(json: unknown, merge: unknown, resource: string | undefined): unknown {
  if (resource === undefined || !isObject(json)) return mergePatched(json, merge);
  return changeEach(json, resource, (shown) => mergePatched(shown, merge) as Record<string, unknown>);
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
