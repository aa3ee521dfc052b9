import { createRoute, z } from '@hono/zod-openapi';
import { errors } from '../../orchestrator/http/errors.ts';
import { CONTROL } from './client.ts';
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
  endedSchema,
  infoSchema,
  mailsSchema,
  newAccountSchema,
  newSandboxSchema,
  openedSchema,
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
  summary: 'Create a further account at every provider, for a client with two keys',
  request: bodyOf(newAccountSchema, { name: 'my-test' }, { required: false }),
  responses: errors.replies(201, 'The account, and its keys.', accountSchema, invalidBody),
});

const openRoute = createRoute({
  ...on('Sandbox', 'post', '/sandboxes'),
  operationId: 'openSandbox',
  summary: 'Open a further sandbox, such as one for each test',
  description:
    'It has its own servers, clock, faults and journal, below a path of this one. Options that are not given are those of this sandbox. Its control API takes the same key.',
  request: bodyOf(newSandboxSchema, { seed: 'my-test' }, { required: false }),
  responses: errors.replies(201, 'The sandbox, with its URLs and keys.', openedSchema, invalidBody),
});

const endRoute = createRoute({
  ...on('Sandbox', 'delete', '/sandboxes/{id}'),
  operationId: 'endSandbox',
  summary: 'End a sandbox that was opened, as at the end of its test',
  request: { params: z.object({ id: z.string() }) },
  responses: errors.replies(200, 'It has ended.', endedSchema, ['unauthorized', 'not_found']),
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

export function clockRoutes({ key, sandbox, sandboxes, controlOrigin, ca: currentCa }: ControlDeps) {
  const { clock } = sandbox;
  const show = () => ({
    now: new Date(clock.now()).toISOString(),
    kind: clock.kind,
    is_frozen: clock.isFrozen,
    timers: clock.timers,
  });
  const infoOf = async ({
    seed,
    defaultAccount,
  }: Pick<ControlDeps['sandbox'], 'seed' | 'defaultAccount'>) => {
    const ca = await currentCa();
    return { seed, account: toAccount(defaultAccount), ...(ca !== undefined && { ca }) };
  };
  return createRouter()
    .openapi(infoRoute, async (context) => {
      return context.json(await infoOf(sandbox), 200);
    })
    .openapi(openRoute, async (context) => {
      const given = Object.entries(context.req.valid('json')).filter(([, value]) => value !== undefined);
      const { id, path, sandbox: opened } = await sandboxes.add(Object.fromEntries(given));
      const control = { base_url: `${controlOrigin()}${path}${CONTROL}`, api_key: key };
      return context.json({ id, control, ...(await infoOf(opened)) }, 201);
    })
    .openapi(accountRoute, async (context) =>
      context.json(toAccount(await sandbox.account(context.req.valid('json').name)), 201),
    )
    .openapi(endRoute, async (context) => {
      const unstruck = await sandboxes.end(context.req.valid('param').id);
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
