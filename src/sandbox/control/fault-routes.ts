import { z } from '@hono/zod-openapi';
import { ApiError } from '../../contract/errors.ts';
import { anyArmingSchema } from '../faults/arming.ts';
import { faultCatalog, faultNames } from '../faults/catalog/catalog.ts';
import { transitionSchema } from '../transitions/transitions.ts';
import { type ControlDeps, routesOf } from './route.ts';
import {
  armedListSchema,
  armedSchema,
  faultEventsSchema,
  faultKindsSchema,
  finishedSchema,
  finishSchema,
  toArmed,
  transitionsSchema,
} from './schemas.ts';

const ofFaults = routesOf('Faults');
const ofTransitions = routesOf('Transitions');

export const faultRoutes = [
  ofFaults('get', '/faults/catalog', {
    id: 'listFaultKinds',
    summary: 'All faults that can be armed, with their settings',
    reply: ['By layer.', faultKindsSchema],
    run: () => ({ faults: faultNames.map(kindOf) }),
  }),
  ofFaults('post', '/faults', {
    id: 'armFault',
    summary: 'Arm a fault',
    description:
      'Limit it by provider, route, instance and volume; it triggers once, several times or until disarmed; always, or with a probability drawn from the seed. Put the fault’s own settings next to these fields.',
    input: anyArmingSchema,
    example: { fault: 'http-500', route: 'POST /instances', times: 3 },
    status: 201,
    reply: ['The fault is armed.', armedSchema],
    run: async ({ sandbox }, { fault, ...options }) =>
      toArmed((await sandbox.faults.arm(fault, options)).toJSON()),
  }),
  ofFaults('get', '/faults', {
    id: 'listFaults',
    summary: 'Armed faults that can still trigger',
    input: z.object({
      all: z
        .enum(['true', 'false'])
        .optional()
        .meta({ description: '`true`: also faults that can no longer trigger.' }),
    }),
    reply: ['The faults, in the order in which they trigger.', armedListSchema],
    run: ({ sandbox }, { all }) => ({ faults: sandbox.faults.list({ all: all === 'true' }).map(toArmed) }),
  }),
  ofFaults('get', '/faults/events', {
    id: 'listFaultEvents',
    summary: 'Times at which faults triggered',
    reply: ['The newest 10,000, oldest first.', faultEventsSchema],
    run: ({ sandbox }) => ({
      events: sandbox.faults.events.map(({ at, ...event }) => ({
        at: new Date(at).toISOString(),
        ...event,
      })),
    }),
  }),
  ofFaults('delete', '/faults/{id}', {
    id: 'disarmFault',
    summary: 'Disarm one fault',
    run({ sandbox }, { id }) {
      if (sandbox.faults.disarm(id)) return;
      const message = `No fault ${id} is armed: GET /control/faults lists the armed faults.`;
      throw new ApiError('not_found', message);
    },
  }),
  ofFaults('delete', '/faults', {
    id: 'clearFaults',
    summary: 'Disarm all faults',
    run: ({ sandbox }) => sandbox.faults.clear(),
  }),
  ofTransitions('post', '/transitions', {
    id: 'setTransitions',
    summary:
      'Set how transitions of machines and volumes finish from now on: at once, after a time, after a number of polls, or by hand',
    input: transitionSchema,
    example: { mode: 'polls', polls: 3, phase: 'boot' },
    reply: ['The settings in force.', transitionsSchema],
    run({ sandbox: { transitions } }, setting) {
      transitions.set(setting);
      return show(transitions);
    },
  }),
  ofTransitions('get', '/transitions', {
    id: 'getTransitions',
    summary: 'Transition settings, and waiting transitions',
    reply: ['Now.', transitionsSchema],
    run: ({ sandbox }) => show(sandbox.transitions),
  }),
  ofTransitions('post', '/transitions/finish', {
    id: 'finishTransitions',
    summary: 'Finish waiting transitions of an instance or a volume, or all',
    input: finishSchema,
    isBodyOptional: true,
    example: { instance: 'inst-1' },
    reply: ['Done.', finishedSchema],
    run: ({ sandbox }, of) => ({ finished: sandbox.transitions.finish(of) }),
  }),
  ofTransitions('delete', '/transitions', {
    id: 'clearTransitions',
    summary: 'Restore the usual times of transitions, and finish waiting ones',
    run: ({ sandbox }) => sandbox.transitions.clear(),
  }),
];

function kindOf(fault: (typeof faultNames)[number]) {
  const { layer, does, rule, params } = faultCatalog[fault];
  return { fault, layer, does, rule, settings: { ...z.toJSONSchema(params, { io: 'input' }) } };
}

function show(transitions: ControlDeps['sandbox']['transitions']) {
  return {
    settings: [...transitions.settings],
    held: transitions.held().map(({ pollsLeft, ...held }) => ({ ...held, polls_left: pollsLeft })),
  };
}
