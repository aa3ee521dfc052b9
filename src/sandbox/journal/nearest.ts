import { z } from '@hono/zod-openapi';
import { formatPath, type Issue } from '../../contract/errors.ts';
import { valueAt } from '../../contract/issue-words.ts';
import { nearestRoutes, operationOf } from '../operations.ts';
import { mostLike } from '../options.ts';
import type { JournalEntry } from './entry.ts';
import { type AskServer, kindOf, type RequestKind } from './request-kinds.ts';

const changeSchema = z.object({
  path: z.string().meta({ description: 'A field of the body; `method` and `path` where these change.' }),
  from: z.unknown().optional(),
  to: z.unknown().optional().meta({ description: 'Absent: remove the field.' }),
});

/** The request that a client may have meant. */
export const nearestRequestSchema = z
  .object({
    entry: z.int(),
    problems: z
      .array(z.object({ path: z.string(), message: z.string() }))
      .meta({ description: 'The errors reported by the server.' }),
    nearest: z
      .object({ method: z.string(), path: z.string(), body: z.unknown().optional() })
      .nullable()
      .meta({ description: 'Null: no valid request is similar.' }),
    changes: z.array(changeSchema),
  })
  .meta({ id: 'NearestRequest' });
export type NearestRequest = z.infer<typeof nearestRequestSchema>;
type Change = z.infer<typeof changeSchema>;
type JsonObject = Record<string, unknown>;

/** Returns the valid request that is most similar to one that was refused as invalid or not found. */
export async function nearestRequest(
  entry: JournalEntry,
  known: readonly string[],
  ask: AskServer,
): Promise<NearestRequest> {
  const { number, provider, method, path, status, request } = entry;
  const problems = problemsIn(entry.response.body);
  const none = { entry: number, problems, nearest: null, changes: [] };
  const found = operationOf(provider, method, path);
  if (found === undefined) return { ...none, ...nearestRoute(entry) };
  if (status === 404) return { ...none, ...nearestResource(entry, known) };
  const kind = status === 400 ? kindOf(provider, found.operation.id) : undefined;
  if (kind === undefined) return none;
  const sent = isObject(request.body) ? request.body : {};
  const body = structuredClone(sent);
  for (const [field, values] of Object.entries(await kind.choices(sent, ask))) choose(body, field, values);
  repair(kind, body);
  leaveOut(kind, body, sent, problems);
  if (!kind.schema.safeParse(body).success) return none;
  return { ...none, nearest: { method, path, body }, changes: changesBetween(sent, body) };
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The `details.issues` of either server's error. */
function problemsIn(body: unknown): Issue[] {
  const { error, details } = (body ?? {}) as JsonObject;
  const { issues } = ((isObject(error) ? error['details'] : details) ?? {}) as JsonObject;
  return Array.isArray(issues) ? (issues as Issue[]).map(({ path, message }) => ({ path, message })) : [];
}

function nearestRoute({ provider, method, path }: JournalEntry): Pick<NearestRequest, 'nearest' | 'changes'> {
  const [route] = nearestRoutes(provider, method, path);
  if (route === undefined) return { nearest: null, changes: [] };
  const [pathname = '', query] = path.split('?');
  const given = pathname.split('/');
  const words = route.path.split('/').map((word, at) => (word.startsWith('{') ? (given[at] ?? word) : word));
  const meant = {
    method: route.method,
    path: query === undefined ? words.join('/') : `${words.join('/')}?${query}`,
  };
  return { nearest: meant, changes: changesBetween({ method, path }, meant) };
}

/** The resource in the journal whose id is most similar to the one in the path. */
function nearestResource(
  { method, path, resource }: JournalEntry,
  known: readonly string[],
): Pick<NearestRequest, 'nearest' | 'changes'> {
  const meant =
    resource === undefined
      ? undefined
      : mostLike(
          resource,
          known.filter((id) => id !== resource),
        );
  if (resource === undefined || meant === undefined) return { nearest: null, changes: [] };
  const meantPath = path.replace(encodeURIComponent(resource), encodeURIComponent(meant));
  return { nearest: { method, path: meantPath }, changes: [{ path: 'path', from: path, to: meantPath }] };
}

/**
 * Sets a field to the allowed value that is most similar to its value. If the allowed value is undefined, it removes
 * the field.
 */
function choose(body: JsonObject, field: string, values: readonly unknown[]): void {
  const value = body[field];
  if (values.includes(value) || values.length === 0) return;
  if (values[0] === undefined) {
    delete body[field];
    return;
  }
  const texts = values.filter((choice) => typeof choice === 'string');
  body[field] = (typeof value === 'string' ? mostLike(value, texts) : undefined) ?? values[0];
}

const MAX_REPAIRS = 100;

/** Corrects what the schema refuses: a number as text is converted, and an optional part is removed. */
function repair({ schema, samples }: RequestKind, body: JsonObject): void {
  const tried = new Set<string>();
  for (let count = 0; count < MAX_REPAIRS; count++) {
    const issue = schema.safeParse(body).error?.issues[0];
    if (issue === undefined) return;
    const [field] = issue.path;
    if (field === undefined) return;
    const meant = converted(issue, valueAt(body, issue.path), String(field) in samples);
    const place = formatPath(issue.path);
    if (meant !== undefined && !tried.has(place)) set(body, issue.path, meant);
    else if (String(field) in samples && issue.path.length === 1)
      body[String(field)] = samples[String(field)];
    else if (valueAt(body, issue.path) !== undefined) remove(body, issue.path);
    else remove(body, issue.path.slice(0, -1));
    tried.add(place);
  }
}

/** Converts the value to the expected type, if possible. */
function converted(issue: z.core.$ZodIssue, value: unknown, isNeeded: boolean): unknown {
  if (issue.code !== 'invalid_type' || value === undefined || value === null) return undefined;
  const { expected } = issue;
  if (expected === 'string' && typeof value === 'number') return String(value);
  const isNumber = (expected === 'number' || expected === 'int') && typeof value === 'string';
  if (isNumber) return value.trim() === '' || Number.isNaN(Number(value)) ? undefined : Number(value);
  return expected === 'array' && isNeeded && typeof value === 'string' ? [value] : undefined;
}

function set(body: JsonObject, path: readonly PropertyKey[], value: unknown): void {
  const parent = valueAt(body, path.slice(0, -1)) as Record<PropertyKey, unknown>;
  const last = path.at(-1);
  if (last !== undefined) parent[last] = value;
}

function remove(body: JsonObject, path: readonly PropertyKey[]): void {
  const parent = valueAt(body, path.slice(0, -1)) as Record<PropertyKey, unknown> | unknown[];
  const last = path.at(-1);
  if (Array.isArray(parent)) parent.splice(Number(last), 1);
  else if (last !== undefined) delete parent[last];
}

/** Removes fields that the server refused, although they match the schema and were not changed above. */
function leaveOut(kind: RequestKind, body: JsonObject, sent: JsonObject, problems: readonly Issue[]): void {
  for (const { path } of problems) {
    const field = path.split(/[.[]/)[0] ?? '';
    if (JSON.stringify(body[field]) !== JSON.stringify(sent[field])) continue;
    const { [field]: _refused, ...rest } = body;
    if (kind.schema.safeParse(rest).success) delete body[field];
    else if (field in kind.samples) body[field] = kind.samples[field];
  }
}

function changesBetween(before: JsonObject, after: JsonObject): Change[] {
  const fields = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return fields.flatMap((path) => {
    const [from, to] = [before[path], after[path]];
    if (JSON.stringify(from) === JSON.stringify(to)) return [];
    return { path, ...(from !== undefined && { from }), ...(to !== undefined && { to }) };
  });
}
