import { createRoute, z } from '@hono/zod-openapi';
import { ApiError, invalidRequest } from '../../contract/errors.ts';
import { jsonContent } from '../../http/api/create-app.ts';
import { errors } from '../../orchestrator/http/errors.ts';
import { Fatal } from '../../ports/errors.ts';
import { parseScenario } from '../state/read-scenario.ts';
import { runScenario } from '../state/run-scenario.ts';
import { scenarioSchema } from '../state/scenario-format.ts';
import { snapshotSchema } from '../state/snapshots.ts';
import { bodyOf, type ControlDeps, createRouter, invalidBody, on } from './deps.ts';
import { doneSchema, dumpSchema, newSnapshotSchema, playedSchema, snapshotListSchema } from './schemas.ts';

const oneSnapshot = z.object({ name: z.string() });

const resetRoute = createRoute({
  ...on('State', 'post', '/reset'),
  operationId: 'reset',
  summary: 'Reset the sandbox to its start',
  description:
    'Resets the time, all resources, armed faults and the journal. Initial keys and snapshots stay; accounts created since are gone. It waits for a running change of the clock; unanswered requests are broken off.',
  responses: errors.replies(200, 'Done.', doneSchema, ['unauthorized']),
});

const listRoute = createRoute({
  ...on('State', 'get', '/snapshots'),
  operationId: 'listSnapshots',
  summary: 'The snapshots, in memory',
  responses: errors.replies(200, 'Oldest first.', snapshotListSchema, ['unauthorized']),
});

const takeRoute = createRoute({
  ...on('State', 'post', '/snapshots'),
  operationId: 'takeSnapshot',
  summary: 'Take a snapshot',
  description: 'Replaces a snapshot of the same name.',
  request: bodyOf(newSnapshotSchema, { name: 'ten-running' }, { required: false }),
  responses: errors.replies(201, 'The snapshot.', snapshotSchema, invalidBody),
});

const restoreRoute = createRoute({
  ...on('State', 'post', '/snapshots/{name}/restore'),
  operationId: 'restoreSnapshot',
  summary: 'Restore a snapshot',
  description:
    'Restores the time, all resources, armed faults and the journal. The servers start as after a crash, and draw the same random numbers as then.',
  request: { params: oneSnapshot },
  responses: errors.replies(200, 'The snapshot.', snapshotSchema, ['unauthorized', 'not_found']),
});

const removeRoute = createRoute({
  ...on('State', 'delete', '/snapshots/{name}'),
  operationId: 'removeSnapshot',
  summary: 'Delete a snapshot',
  request: { params: oneSnapshot },
  responses: errors.replies(200, 'Done.', doneSchema, ['unauthorized', 'not_found']),
});

const dumpRoute = createRoute({
  ...on('State', 'get', '/dump'),
  operationId: 'dump',
  summary: 'Dump the state: machines and volumes of each platform, and instances of all accounts',
  responses: errors.replies(200, 'Now.', dumpSchema, ['unauthorized']),
});

const scenarioRoute = createRoute({
  ...on('State', 'post', '/scenarios'),
  operationId: 'playScenario',
  summary: 'Run a scenario',
  description:
    'Its requests go directly to the servers: faults do not strike them, and the journal does not record them. Its steps advance the clock.',
  request: {
    body: {
      // A required body would be parsed as JSON even with another content type.
      required: false,
      content: {
        ...jsonContent(scenarioSchema),
        'application/yaml': { schema: z.string().meta({ description: 'The scenario as YAML.' }) },
      },
    },
  },
  responses: errors.replies(200, 'The created resources.', playedSchema, invalidBody),
});

export function stateRoutes(deps: ControlDeps) {
  const { snapshots } = deps;
  return createRouter()
    .openapi(resetRoute, async (context) => {
      await snapshots.reset();
      return context.json({ done: true as const }, 200);
    })
    .openapi(listRoute, (context) => context.json({ snapshots: snapshots.list() }, 200))
    .openapi(takeRoute, async (context) =>
      context.json(await snapshots.take(context.req.valid('json').name), 201),
    )
    .openapi(restoreRoute, async (context) => {
      const { name } = context.req.valid('param');
      if (!snapshots.list().some((snapshot) => snapshot.name === name)) throw noSnapshot(name);
      return context.json(await snapshots.restore(name), 200);
    })
    .openapi(removeRoute, (context) => {
      const { name } = context.req.valid('param');
      if (!snapshots.remove(name)) throw noSnapshot(name);
      return context.json({ done: true as const }, 200);
    })
    .openapi(dumpRoute, async (context) => context.json(await dump(deps), 200))
    .openapi(scenarioRoute, async (context) => {
      const made = await play(deps, await context.req.text());
      return context.json({ made }, 200);
    });
}

function noSnapshot(name: string): ApiError {
  return new ApiError('not_found', `There is no snapshot ${name}.`);
}

/** @throws {ApiError} */
async function play({ scenarios }: ControlDeps, text: string) {
  const read = parseScenario(text);
  if ('issues' in read) throw invalidRequest(read.issues);
  try {
    const made = [...(await runScenario(scenarios, read.scenario))];
    return Object.fromEntries(
      made.map(([name, { account, ...rest }]) => [
        name,
        { ...rest, ...(account !== undefined && { account }) },
      ]),
    );
  } catch (problem) {
    throw problem instanceof Fatal ? invalidRequest([{ path: '', message: problem.message }]) : problem;
  }
}

type Dump = z.infer<typeof dumpSchema>;
type Rows = Record<string, unknown>[];

/** Returns the current state. No time passes. */
async function dump({ sandbox, scenarios, keys }: ControlDeps): Promise<Dump> {
  const providers: Dump['providers'] = {};
  for (const { name, platform } of sandbox.providers.values()) {
    const { machines, volumes } = platform;
    const instances: Rows = [];
    for (const { account, provider } of keys()) {
      if (provider !== name) continue;
      const { body } = await scenarios.send({ provider, account, method: 'GET', path: '/v1/instances' });
      const own = (body as { instances: Rows }).instances;
      instances.push(...own.map((instance) => ({ account, ...instance })));
    }
    providers[name] = {
      machines: machines.all() as unknown as Rows,
      volumes: volumes.all() as unknown as Rows,
      attachments: volumes.attachments() as unknown as Rows,
      instances,
    };
  }
  return { seed: sandbox.seed, now: new Date(sandbox.clock.now()).toISOString(), providers };
}
