import { invalidRequest } from '../../contract/errors.ts';
import { Fatal } from '../../ports/errors.ts';
import { runScenario } from '../state/run-scenario.ts';
import { type Scenario, scenarioSchema } from '../state/scenario-format.ts';
import { snapshotSchema } from '../state/snapshots.ts';
import { type ControlDeps, routesOf } from './route.ts';
import { newSnapshotSchema, playedSchema, snapshotListSchema } from './schemas.ts';

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
  ofState('post', '/scenarios', {
    id: 'playScenario',
    summary: 'Run a scenario',
    description:
      'Its requests go directly to the servers: they trigger no fault, and the journal does not record them. Its steps advance the clock.',
    input: scenarioSchema,
    reply: ['The created resources.', playedSchema],
    run: async (deps, scenario) => ({ made: await play(deps, scenario) }),
  }),
];

/** @throws {ApiError} */
async function play({ scenarios }: ControlDeps, scenario: Scenario) {
  try {
    return Object.fromEntries(await runScenario(scenarios, scenario));
  } catch (problem) {
    throw problem instanceof Fatal ? invalidRequest([{ path: '', message: problem.message }]) : problem;
  }
}
