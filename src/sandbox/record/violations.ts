import { z } from 'zod';
import {
  configurationAnswerSchema,
  errorAnswerSchema,
  instanceAnswerSchema,
  restartStatusAnswerSchema,
  tokenAnswerSchema,
  volumeAnswerSchema,
  volumeLocationAnswerSchema,
} from '../../client/answers.ts';
import { resizeVolumeRequestSchema } from '../../contract/extensions.ts';
import { createInstanceRequestSchema, instanceTransitions } from '../../contract/instance.ts';
import { toIssues } from '../../contract/issue-words.ts';
import { tokenRequestSchema } from '../../contract/token.ts';
import type { TransitionTable } from '../../contract/transitions.ts';
import {
  attachVolumeRequestSchema,
  createVolumeRequestSchema,
  detachVolumeRequestSchema,
  volumeTransitions,
} from '../../contract/volume.ts';
import type { JournalEntry } from '../journal/entry.ts';

export const violationSchema = z.object({
  in: z.enum(['request', 'response']),
  path: z.string().meta({ description: 'A field of the body; empty for the whole.' }),
  message: z.string(),
});
export type Violation = z.infer<typeof violationSchema>;

const requestSchemas: Readonly<Record<string, z.ZodType>> = {
  issueToken: tokenRequestSchema,
  createInstance: createInstanceRequestSchema,
  createVolume: createVolumeRequestSchema,
  attachVolume: attachVolumeRequestSchema,
  detachVolume: detachVolumeRequestSchema,
  resizeVolume: resizeVolumeRequestSchema,
};

const offers = z.object({ configurations: z.array(configurationAnswerSchema) });
const answerSchemas: Readonly<Record<string, z.ZodType>> = {
  issueToken: tokenAnswerSchema.omit({ access_token: true }),
  listConfigurations: offers,
  listAvailability: offers,
  listInstances: z.object({ instances: z.array(instanceAnswerSchema) }),
  createInstance: instanceAnswerSchema,
  getInstance: instanceAnswerSchema,
  destroyInstance: instanceAnswerSchema,
  startInstance: instanceAnswerSchema,
  stopInstance: instanceAnswerSchema,
  restartInstance: instanceAnswerSchema,
  getRestart: restartStatusAnswerSchema,
  listVolumeLocations: z.object({ locations: z.array(volumeLocationAnswerSchema) }),
  createVolume: volumeAnswerSchema,
  getVolume: volumeAnswerSchema,
  attachVolume: volumeAnswerSchema,
  detachVolume: volumeAnswerSchema,
  resizeVolume: volumeAnswerSchema,
};

const reachable = {
  instance: closure(instanceTransitions),
  volume: closure(volumeTransitions),
};

/** Checks the exchanges of one provider, in order. */
export class ContractJudge {
  /** The last seen status of each resource; `gone` after a 404. */
  readonly #shown = new Map<string, string>();

  violationsOf(entry: JournalEntry): Violation[] {
    const { operation } = entry;
    if (operation === undefined)
      return [inRequest('', `${entry.method} ${entry.path} is not in the contract`)];
    return [
      ...requestViolations(operation, entry),
      ...answerViolations(operation, entry),
      ...this.#moves(entry),
    ];
  }

  /** Finds statuses that cannot follow the earlier ones. A poll may miss intermediate ones. */
  #moves({ operation = '', resource, status, response }: JournalEntry): Violation[] {
    const kind = operation.includes('Instance') ? 'instance' : 'volume';
    if (resource === undefined || !(operation in answerSchemas)) return [];
    const before = this.#shown.get(resource);
    if (status === 404) this.#shown.set(resource, 'gone');
    const { status: shown } = (response.body ?? {}) as { status?: unknown };
    if (status === null || status >= 300 || typeof shown !== 'string') return [];
    this.#shown.set(resource, shown);
    if (before === undefined || before === shown || reachable[kind].get(before)?.has(shown) !== false)
      return [];
    if (before === 'gone') return [inAnswer('status', `it was gone (404) before, and is ${shown} now`)];
    return [inAnswer('status', `${before} may not become ${shown}`)];
  }
}

const inRequest = (path: string, message: string): Violation => ({ in: 'request', path, message });
const inAnswer = (path: string, message: string): Violation => ({ in: 'response', path, message });

function requestViolations(operation: string, { request, status }: JournalEntry): Violation[] {
  const schema = requestSchemas[operation];
  // A refused request may have been invalid on purpose.
  if (schema === undefined || (status !== null && status >= 400)) return [];
  return issuesOf(schema, request.body ?? {}).map(({ path, message }) => inRequest(path, message));
}

function answerViolations(operation: string, { status, response, resource }: JournalEntry): Violation[] {
  const { headers, body, problem } = response;
  if (status === null || problem !== undefined) return [inAnswer('', problem ?? 'no answer')];
  if (operation === 'deleteVolume' && status < 300) return [];
  const isSuccess = status === 200 || status === 201;
  const schema = isSuccess ? answerSchemas[operation] : errorAnswerSchema;
  if (!isSuccess && status < 400)
    return [inAnswer('', `the status ${status} has no meaning in the contract`)];
  if (!/^application\/([\w.-]+\+)?json\b/i.test(headers['content-type'] ?? ''))
    return [
      inAnswer('', `expected Content-Type: application/json, got ${headers['content-type'] ?? 'none'}`),
    ];
  if (schema === undefined) return [];
  const found = issuesOf(schema, body).map(({ path, message }) => inAnswer(path, message));
  const { id } = (body ?? {}) as { id?: unknown };
  if (
    isSuccess &&
    resource !== undefined &&
    operation !== 'getRestart' &&
    id !== undefined &&
    id !== resource
  )
    found.push(inAnswer('id', 'expected the requested id'));
  return found;
}

function issuesOf(schema: z.ZodType, data: unknown) {
  const { error } = schema.safeParse(data);
  return error === undefined ? [] : toIssues({ error, data });
}

/** Returns for each status those that a later read may show. */
function closure<State extends string>(table: TransitionTable<State>): Map<string, Set<string>> {
  const next = table as Readonly<Record<string, readonly string[]>>;
  const found = new Map<string, Set<string>>([['gone', new Set()]]);
  for (const state of Object.keys(next)) {
    const seen = new Set<string>();
    const open = [...(next[state] ?? [])];
    for (let one = open.pop(); one !== undefined; one = open.pop()) {
      if (seen.has(one)) continue;
      seen.add(one);
      open.push(...(next[one] ?? []));
    }
    found.set(state, seen);
  }
  return found;
}

/** A request to a real provider, and its answer. */
export const recordedExchangeSchema = z
  .object({
    at_ms: z.int().nonnegative().meta({ description: 'Milliseconds since the first exchange.' }),
    request: z.object({ method: z.string(), path: z.string(), body: z.unknown().optional() }),
    response: z.object({
      status: z.int().nullable().meta({ description: 'Null: the provider was not reached.' }),
      headers: z.record(z.string(), z.string()),
      body: z.unknown().optional(),
    }),
    violations: z.array(violationSchema).optional().meta({ description: 'Violations of the contract.' }),
  })
  .meta({ id: 'RecordedExchange' });
export type RecordedExchange = z.infer<typeof recordedExchangeSchema>;
