import { createRoute, z } from '@hono/zod-openapi';
import { ApiError } from '../../contract/errors.ts';
import { errors } from '../../orchestrator/http/errors.ts';
import { anyArmingSchema } from '../faults/arming.ts';
import { faultCatalog, faultNames } from '../faults/catalog/catalog.ts';
import { transitionSchema } from '../transitions/transitions.ts';
import { bodyOf, type ControlDeps, createRouter, invalidBody, on, toArmed } from './deps.ts';
import {
  armedListSchema,
  armedSchema,
  doneSchema,
  faultKindsSchema,
  finishedSchema,
  finishSchema,
  strikesSchema,
  transitionsSchema,
} from './schemas.ts';

const kindsRoute = createRoute({
  ...on('Faults', 'get', '/faults/catalog'),
  operationId: 'listFaultKinds',
  summary: 'All faults that can be armed, with their settings',
  responses: errors.replies(200, 'By layer.', faultKindsSchema, ['unauthorized']),
});

const armRoute = createRoute({
  ...on('Faults', 'post', '/faults'),
  operationId: 'armFault',
  summary: 'Arm a fault',
  description:
    'Limit it by provider, route, instance and volume; it strikes once, several times or until disarmed; always, or with a probability drawn from the seed. Put the fault’s own settings next to these fields.',
  request: bodyOf(anyArmingSchema, { fault: 'http-500', route: 'POST /instances', times: 3 }),
  responses: errors.replies(201, 'The fault is armed.', armedSchema, invalidBody),
});

const listRoute = createRoute({
  ...on('Faults', 'get', '/faults'),
  operationId: 'listFaults',
  summary: 'Armed faults that can still strike',
  request: {
    query: z.object({
      all: z
        .enum(['true', 'false'])
        .optional()
        .meta({ description: '`true`: also faults that can no longer strike.' }),
    }),
  },
  responses: errors.replies(200, 'The faults, in the order in which they strike.', armedListSchema, [
    'unauthorized',
  ]),
});

const strikesRoute = createRoute({
  ...on('Faults', 'get', '/faults/strikes'),
  operationId: 'listStrikes',
  summary: 'Strikes of faults',
  responses: errors.replies(200, 'The newest 10,000, oldest first.', strikesSchema, ['unauthorized']),
});

const disarmRoute = createRoute({
  ...on('Faults', 'delete', '/faults/{id}'),
  operationId: 'disarmFault',
  summary: 'Disarm one fault',
  request: { params: z.object({ id: z.string() }) },
  responses: errors.replies(200, 'Done.', doneSchema, ['unauthorized', 'not_found']),
});

const clearRoute = createRoute({
  ...on('Faults', 'delete', '/faults'),
  operationId: 'clearFaults',
  summary: 'Disarm all faults',
  responses: errors.replies(200, 'Done.', doneSchema, ['unauthorized']),
});

const setRoute = createRoute({
  ...on('Transitions', 'post', '/transitions'),
  operationId: 'setTransitions',
  summary:
    'Set how transitions of machines and volumes finish from now on: at once, after a time, after a number of polls, or by hand',
  request: bodyOf(transitionSchema, { mode: 'polls', polls: 3, phase: 'boot' }),
  responses: errors.replies(200, 'The settings in force.', transitionsSchema, invalidBody),
});

const showRoute = createRoute({
  ...on('Transitions', 'get', '/transitions'),
  operationId: 'getTransitions',
  summary: 'Transition settings, and waiting transitions',
  responses: errors.replies(200, 'Now.', transitionsSchema, ['unauthorized']),
});

const finishRoute = createRoute({
  ...on('Transitions', 'post', '/transitions/finish'),
  operationId: 'finishTransitions',
  summary: 'Finish waiting transitions of an instance or a volume, or all',
  request: bodyOf(finishSchema, { instance: 'inst-1' }, { required: false }),
  responses: errors.replies(200, 'Done.', finishedSchema, invalidBody),
});

const usualRoute = createRoute({
  ...on('Transitions', 'delete', '/transitions'),
  operationId: 'clearTransitions',
  summary: 'Restore the usual times of transitions, and finish waiting ones',
  responses: errors.replies(200, 'Done.', doneSchema, ['unauthorized']),
});

const done = { done: true as const };

export function faultRoutes(deps: ControlDeps) {
  const { faults, transitions } = deps.sandbox;
  return createRouter()
    .openapi(kindsRoute, (context) => context.json({ faults: kinds() }, 200))
    .openapi(armRoute, async (context) => {
      const { fault, ...options } = context.req.valid('json');
      const armed = await faults.arm(fault, options);
      return context.json(toArmed(armed.toJSON()), 201);
    })
    .openapi(listRoute, (context) => {
      const all = context.req.valid('query').all === 'true';
      return context.json({ faults: faults.list({ all }).map(toArmed) }, 200);
    })
    .openapi(strikesRoute, (context) => {
      const strikes = faults.events.map(({ at, number: _number, ...strike }) => ({
        at: new Date(at).toISOString(),
        ...strike,
      }));
      return context.json({ strikes }, 200);
    })
    .openapi(disarmRoute, (context) => {
      const { id } = context.req.valid('param');
      if (!faults.disarm(id))
        throw new ApiError(
          'not_found',
          `No fault ${id} is armed: GET /control/faults lists the armed faults.`,
        );
      return context.json(done, 200);
    })
    .openapi(clearRoute, (context) => {
      faults.clear();
      return context.json(done, 200);
    })
    .openapi(setRoute, (context) => {
      transitions.set(context.req.valid('json'));
      return context.json(show(deps), 200);
    })
    .openapi(showRoute, (context) => context.json(show(deps), 200))
    .openapi(finishRoute, (context) =>
      context.json({ finished: transitions.finish(context.req.valid('json')) }, 200),
    )
    .openapi(usualRoute, (context) => {
      transitions.clear();
      return context.json(done, 200);
    });
}

function kinds() {
  return faultNames.map((fault) => {
    const { layer, does, strikes, params } = faultCatalog[fault];
    return { fault, layer, does, strikes, settings: { ...z.toJSONSchema(params, { io: 'input' }) } };
  });
}

function show({ sandbox: { transitions } }: ControlDeps) {
  return {
    settings: transitions.settings.map((setting) => ({ ...setting })),
    held: transitions.held().map(({ pollsLeft, ...held }) => ({
      provider: held.provider,
      phase: held.phase,
      polls_left: pollsLeft,
      ...(held.instance !== undefined && { instance: held.instance }),
      ...(held.volume !== undefined && { volume: held.volume }),
    })),
  };
}
