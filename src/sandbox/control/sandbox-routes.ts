import type { SandboxAccount, SandboxParts } from '../parts.ts';
import { CONTROL } from './client.ts';
import { type ControlDeps, routesOf } from './route.ts';
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
  toArmed,
} from './schemas.ts';

const clockReply = ['The clock.', clockSchema] as const;

const ofSandbox = routesOf('Sandbox');
const ofJournal = routesOf('Journal');
const ofClock = routesOf('Clock');

export const sandboxRoutes = [
  ofSandbox('get', '/info', {
    id: 'getSandbox',
    summary: 'URLs of the providers, with a key for each',
    reply: ['The sandbox.', infoSchema],
    run: (deps) => infoOf(deps, deps.sandbox),
  }),
  ofSandbox('post', '/sandboxes', {
    id: 'openSandbox',
    summary: 'Open a further sandbox, such as one for each test',
    description:
      'It has its own servers, clock, faults and journal, below a path of this one. Options that are not given are those of this sandbox. Its control API takes the same key.',
    input: newSandboxSchema,
    isBodyOptional: true,
    example: { seed: 'my-test' },
    status: 201,
    reply: ['The sandbox, with its URLs and keys.', openedSchema],
    async run(deps, options) {
      const { id, path, sandbox } = await deps.sandboxes.add(options);
      const control = { base_url: `${deps.controlOrigin()}${path}${CONTROL}`, api_key: deps.key };
      return { id, control, ...(await infoOf(deps, sandbox)) };
    },
  }),
  ofSandbox('post', '/accounts', {
    id: 'createAccount',
    summary: 'Create a further account at every provider, for a client with two keys',
    input: newAccountSchema,
    isBodyOptional: true,
    example: { name: 'my-test' },
    status: 201,
    reply: ['The account, and its keys.', accountSchema],
    run: async ({ sandbox }, { name }) => toAccount(await sandbox.account(name)),
  }),
  ofSandbox('delete', '/sandboxes/{id}', {
    id: 'endSandbox',
    summary: 'End a sandbox that was opened, as at the end of its test',
    reply: ['It has ended.', endedSchema],
    run: async ({ sandboxes }, { id }) => ({ untriggered: (await sandboxes.end(id)).map(toArmed) }),
  }),
  ofJournal('get', '/mails', {
    id: 'listMails',
    summary: 'Mails of the marketplace, oldest first',
    reply: ['Empty without a marketplace.', mailsSchema],
    run: ({ sandbox }) => ({
      mails: sandbox.mails.map(({ at, ...mail }) => ({ at: new Date(at).toISOString(), ...mail })),
    }),
  }),
  ofClock('post', '/clock/advance-until-idle', {
    id: 'advanceClockUntilIdle',
    summary: 'Advance the clock until no work is in progress',
    reply: clockReply,
    async run({ sandbox: { clock } }, _input, { signal }) {
      await clock.advanceUntilIdle({ signal });
      return show(clock);
    },
  }),
  ofClock('get', '/clock', {
    id: 'getClock',
    summary: 'Current time of all servers of the sandbox',
    reply: clockReply,
    run: ({ sandbox }) => show(sandbox.clock),
  }),
  ofClock('post', '/clock/advance', {
    id: 'advanceClock',
    summary: 'Advance the clock; everything that becomes due runs in order',
    description: 'If the client disconnects, the clock stops where it is.',
    input: advanceSchema,
    example: { by: '30d' },
    reply: ['The clock afterwards.', clockSchema],
    async run({ sandbox: { clock } }, { by }, { signal }) {
      await clock.advance(by, { signal });
      return show(clock);
    },
  }),
  ofClock('post', '/clock/freeze', {
    id: 'freezeClock',
    summary: 'Freeze the clock, also for waiting requests; it can still be advanced',
    reply: clockReply,
    run({ sandbox: { clock } }) {
      clock.freeze();
      return show(clock);
    },
  }),
  ofClock('post', '/clock/resume', {
    id: 'resumeClock',
    summary: 'Unfreeze the clock',
    reply: clockReply,
    run({ sandbox: { clock } }) {
      clock.resume();
      return show(clock);
    },
  }),
];

function show(clock: SandboxParts['clock']) {
  const { kind, isFrozen, timers } = clock;
  return { now: new Date(clock.now()).toISOString(), kind, is_frozen: isFrozen, timers };
}

async function infoOf(
  { ca }: ControlDeps,
  { seed, defaultAccount }: Pick<SandboxParts, 'seed' | 'defaultAccount'>,
) {
  return { seed, account: toAccount(defaultAccount), ca: await ca() };
}

function toAccount({ name, providers, marketplace }: SandboxAccount) {
  const access = ({ baseUrl, apiKey }: { baseUrl: string; apiKey: string }) => ({
    base_url: baseUrl,
    api_key: apiKey,
  });
  const at = Object.entries(providers).map(([provider, one]) => [provider, access(one)] as const);
  return {
    name,
    providers: Object.fromEntries(at),
    marketplace: marketplace && {
      ...access(marketplace),
      email: marketplace.email,
      user_id: marketplace.userId,
      team_id: marketplace.teamId,
    },
  };
}
