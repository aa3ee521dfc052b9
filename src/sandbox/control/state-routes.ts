import { z } from '@hono/zod-openapi';
import { invalidRequest } from '../../contract/errors.ts';
import { Fatal } from '../../ports/errors.ts';
import { parseScenario } from '../state/read-scenario.ts';
import { runScenario } from '../state/run-scenario.ts';
import { scenarioSchema } from '../state/scenario-format.ts';
import { snapshotSchema } from '../state/snapshots.ts';
import { type ControlDeps, routesOf } from './route.ts';
import { dumpSchema, newSnapshotSchema, playedSchema, snapshotListSchema } from './schemas.ts';

const ofState = routesOf('State');

export const stateRoutes = [
  ofState('post', '/reset', {
    id: 'reset',
    summary: 'Reset the sandbox to its start',
    description:
      'Resets the time, all resources, armed faults and the journal. Initial keys and snapshots stay; accounts created since are gone. It waits for a running change of the clock; unanswered requests are broken off.',
    run: ({ snapshots }) => snapshots.reset(),
  }),
  ofState('get', '/snapshots', {
    id: 'listSnapshots',
    summary: 'The snapshots, in memory',
    reply: ['Oldest first.', snapshotListSchema],
    run: ({ snapshots }) => ({ snapshots: snapshots.list() }),
  }),
  ofState('post', '/snapshots', {
    id: 'takeSnapshot',
    summary: 'Take a snapshot',
    description: 'Replaces a snapshot of the same name.',
    input: newSnapshotSchema,
    isBodyOptional: true,
    example: { name: 'ten-running' },
    status: 201,
    reply: ['The snapshot.', snapshotSchema],
    run: ({ snapshots }, { name }) => snapshots.take(name),
  }),
  ofState('post', '/snapshots/{name}/restore', {
    id: 'restoreSnapshot',
    summary: 'Restore a snapshot',
    description:
      'Restores the time, all resources, armed faults and the journal. The servers start as after a crash, and draw the same random numbers as then.',
    reply: ['The snapshot.', snapshotSchema],
    run: ({ snapshots }, { name }) => snapshots.restore(name),
  }),
  ofState('delete', '/snapshots/{name}', {
    id: 'removeSnapshot',
    summary: 'Delete a snapshot',
    run: ({ snapshots }, { name }) => snapshots.remove(name),
  }),
  ofState('get', '/dump', {
    id: 'dump',
    summary: 'Dump the state: machines and volumes of each platform, and instances of all accounts',
    reply: ['Now.', dumpSchema],
    run: dump,
  }),
  ofState('post', '/scenarios', {
    id: 'playScenario',
    summary: 'Run a scenario',
    description:
      'Its requests go directly to the servers: faults do not strike them, and the journal does not record them. Its steps advance the clock.',
    input: scenarioSchema,
    // A required body would be parsed as JSON even with another content type.
    isBodyOptional: true,
    otherContent: {
      'application/yaml': { schema: z.string().meta({ description: 'The scenario as YAML.' }) },
    },
    reply: ['The created resources.', playedSchema],
    run: async (deps, _input, request) => ({ made: await play(deps, await request.text()) }),
  }),
];

/** @throws {ApiError} */
async function play({ scenarios }: ControlDeps, text: string) {
  const read = parseScenario(text);
  if ('issues' in read) throw invalidRequest(read.issues);
  try {
    return Object.fromEntries(await runScenario(scenarios, read.scenario));
  } catch (problem) {
    throw problem instanceof Fatal ? invalidRequest([{ path: '', message: problem.message }]) : problem;
  }
}

type Dump = z.infer<typeof dumpSchema>;
type Rows = Record<string, unknown>[];

/** Returns the current state. No time passes. */
async function dump({ sandbox, scenarios, accounts }: ControlDeps): Promise<Dump> {
  const providers: Dump['providers'] = {};
  for (const { name, platform } of sandbox.providers.values()) {
    const { machines, volumes } = platform;
    const instances: Rows = [];
    for (const { account, provider } of accounts.keys()) {
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
