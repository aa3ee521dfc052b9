import { createRoute, z } from '@hono/zod-openapi';
import { errors } from '../../orchestrator/http/errors.ts';
import {
  bodyOf,
  type ControlDeps,
  type ControlledAccount,
  createRouter,
  invalidBody,
  on,
  toArmed,
} from './deps.ts';
import {
  accountSchema,
  advanceSchema,
  clockSchema,
  endedAccountSchema,
  infoSchema,
  mailsSchema,
  newAccountSchema,
} from './schemas.ts';

const clockReply = errors.replies(200, 'The clock.', clockSchema, ['unauthorized']);

const infoRoute = createRoute({
  ...on('Sandbox', 'get', '/info'),
  operationId: 'getSandbox',
  summary: 'URLs of the providers, with a key for each',
  responses: errors.replies(200, 'The sandbox.', infoSchema, ['unauthorized']),
});

const accountRoute = createRoute({
  ...on('Sandbox', 'post', '/accounts'),
  operationId: 'createAccount',
  summary: 'Create an account at every provider; other accounts do not see its resources',
  request: bodyOf(newAccountSchema, { name: 'my-test' }, { required: false }),
  responses: errors.replies(201, 'The account, and its keys.', accountSchema, invalidBody),
});

const endRoute = createRoute({
  ...on('Sandbox', 'delete', '/accounts/{name}'),
  operationId: 'endAccount',
  summary: 'End what an account has, as at the end of a test',
  description:
    'Disarms its faults, finishes its transitions, and orders its machines to be destroyed, which they are as time passes.',
  request: { params: z.object({ name: z.string() }) },
  responses: errors.replies(200, 'Done.', endedAccountSchema, ['unauthorized', 'not_found']),
});

const mailsRoute = createRoute({
  ...on('Journal', 'get', '/mails'),
  operationId: 'listMails',
  summary: 'Mails of the marketplace, oldest first',
  responses: errors.replies(200, 'Empty without a marketplace.', mailsSchema, ['unauthorized']),
});

const idleRoute = createRoute({
  ...on('Clock', 'post', '/clock/advance-until-idle'),
  operationId: 'advanceClockUntilIdle',
  summary: 'Advance the clock until no work is in progress',
  responses: clockReply,
});

const readRoute = createRoute({
  ...on('Clock', 'get', '/clock'),
  operationId: 'getClock',
  summary: 'Current time of all servers of the sandbox',
  responses: clockReply,
});

const advanceRoute = createRoute({
  ...on('Clock', 'post', '/clock/advance'),
  operationId: 'advanceClock',
  summary: 'Advance the clock; everything that becomes due runs in order',
  description: 'If the client disconnects, the clock stops where it is.',
  request: bodyOf(advanceSchema, { by: '30d' }),
  responses: errors.replies(200, 'The clock afterwards.', clockSchema, invalidBody),
});

const freezeRoute = createRoute({
  ...on('Clock', 'post', '/clock/freeze'),
  operationId: 'freezeClock',
  summary: 'Freeze the clock, also for waiting requests; it can still be advanced',
  responses: clockReply,
});

const resumeRoute = createRoute({
  ...on('Clock', 'post', '/clock/resume'),
  operationId: 'resumeClock',
  summary: 'Unfreeze the clock',
  responses: clockReply,
});

export function clockRoutes({ sandbox, ca: currentCa }: ControlDeps) {
  const { clock } = sandbox;
  const show = () => ({
    now: new Date(clock.now()).toISOString(),
    kind: clock.kind,
    is_frozen: clock.isFrozen,
    timers: clock.timers,
  });
  return createRouter()
    .openapi(infoRoute, async (context) => {
      const { seed, defaultAccount } = sandbox;
      const ca = await currentCa();
      const info = { seed, account: toAccount(defaultAccount), ...(ca !== undefined && { ca }) };
      return context.json(info, 200);
    })
    .openapi(accountRoute, async (context) =>
      context.json(toAccount(await sandbox.account(context.req.valid('json').name)), 201),
    )
    .openapi(endRoute, async (context) => {
      const unstruck = await sandbox.endAccount(context.req.valid('param').name);
      return context.json({ unstruck: unstruck.map(toArmed) }, 200);
    })
    .openapi(mailsRoute, (context) => {
      const mails = sandbox.mails.map(({ at, ...mail }) => ({ at: new Date(at).toISOString(), ...mail }));
      return context.json({ mails }, 200);
    })
    .openapi(idleRoute, async (context) => {
      await clock.advanceUntilIdle({ signal: context.req.raw.signal });
      return context.json(show(), 200);
    })
    .openapi(readRoute, (context) => context.json(show(), 200))
    .openapi(advanceRoute, async (context) => {
      await clock.advance(context.req.valid('json').by, { signal: context.req.raw.signal });
      return context.json(show(), 200);
    })
    .openapi(freezeRoute, (context) => {
      clock.freeze();
      return context.json(show(), 200);
    })
    .openapi(resumeRoute, (context) => {
      clock.resume();
      return context.json(show(), 200);
    });
}

function toAccount({ name, providers, marketplace }: ControlledAccount) {
  const access = ({ baseUrl, apiKey }: { baseUrl: string; apiKey: string }) => ({
    base_url: baseUrl,
    api_key: apiKey,
  });
  const at = Object.entries(providers).map(([provider, one]) => [provider, access(one)] as const);
  return {
    name,
    providers: Object.fromEntries(at),
    ...(marketplace !== undefined && {
      marketplace: {
        ...access(marketplace),
        email: marketplace.email,
        user_id: marketplace.userId,
        team_id: marketplace.teamId,
      },
    }),
  };
}
