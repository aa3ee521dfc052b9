import { z } from 'zod';
import { counted } from '../../contract/counted.ts';
import { defineAction } from '../../operator-kit/operation.ts';
import type { Clock, Random } from '../../ports/clock.ts';
import { activeStatuses } from '../contract/deployment.ts';
import { OperatorError } from '../model/own-rows.ts';
import { runningAtSuspension, type Suspension } from '../model/people.ts';
import type { Reader, Store } from '../model/store.ts';
import { assertSuspended, findSuspendable, restore, type Suspendable, suspend } from '../teams/suspend.ts';
import { teamField, userField } from './people.ts';

interface Deps {
  store: Store;
  clock: Clock;
  random: Random;
}

export const reasonField = z
  .string()
  .min(1)
  .max(200)
  .optional()
  .meta({ description: 'Required unless it is a dry run. The customer reads it.' });

/** As forms say it beside the reason. */
export const WHO_READS_IT = 'the customer reads it';

/** @throws {OperatorError} without a reason */
export function requireReason(reason: string | undefined): string {
  if (reason === undefined)
    throw new OperatorError('Give a reason: the customer reads it, and the audit log keeps it.');
  return reason;
}

const planSchema = z
  .object({
    kind: z.enum(['user', 'team']),
    id: z.string(),
    name: z.string().meta({ description: 'The e-mail address of a user, the slug of a team.' }),
    suspended: z.boolean().meta({ description: 'Whether it was suspended before.' }),
    deployments: z.int().meta({ description: 'Its deployments that have not ended.' }),
    effect: z.string().meta({ description: 'The effect, in a sentence.' }),
    done: z.boolean().meta({ description: 'False: a dry run; nothing has changed.' }),
  })
  .meta({ id: 'SuspensionPlan' });
export type SuspensionPlan = z.output<typeof planSchema>;

const whatRuns: Readonly<Record<Suspension['running'], string>> = {
  keep: 'go on and are billed',
  stop: 'are stopped within a minute while a server runs; those that cannot be stopped go on',
  end: 'are terminated within a minute while a server runs, with their disks; volumes are kept',
};

async function planOf(
  { deployments }: Pick<Reader, 'deployments'>,
  of: Suspendable,
  effect: (deployments: number) => string,
  done: boolean,
): Promise<SuspensionPlan> {
  const { kind, id, name, suspension } = of;
  const owner = kind === 'user' ? { userId: id } : { teamIds: [id] };
  const { length } = await deployments.list({ ...owner, statuses: activeStatuses });
  const suspended = suspension !== null;
  return {
    kind,
    id,
    name,
    suspended,
    deployments: length,
    effect: effect(length),
    done,
  };
}

function toText({ kind, name, suspended, effect, done }: SuspensionPlan): string[] {
  const state = suspended ? `The ${kind} ${name} was suspended.` : `The ${kind} ${name} was not suspended.`;
  return [state, done ? `Done: ${effect}.` : `A dry run; with --yes, ${effect}.`];
}

/** On the users' page and on that of the team. */
function inRowsOf(kind: 'user' | 'team', isSuspended: boolean) {
  return {
    of: kind === 'user' ? 'listUsers' : 'showTeam',
    fields: ({ id, suspended }: { id: string; suspended: string | null }) =>
      (suspended !== null) === isSuspended ? { [kind]: id } : undefined,
  };
}

const fields = { user: userField, team: teamField };
/** Where an operator sees who is suspended. */
const pageOf = (team: string | undefined): string =>
  team === undefined ? '/console/users' : `/console/teams/${encodeURIComponent(team)}`;

function suspendAction<Kind extends 'user' | 'team'>(kind: Kind) {
  const named = (input: object): string => (input as Record<Kind, string>)[kind];
  const effectOf =
    (running: Suspension['running'] = 'keep') =>
    (deployments: number): string =>
      `everything but reads, terminate, detach and delete is refused; its deployments (${deployments}) ${whatRuns[running]}`;
  return defineAction({
    name: kind === 'user' ? ('suspendUser' as const) : ('suspendTeam' as const),
    tag: 'Actions',
    path: `/${kind}s/{${kind}}/suspend`,
    summary: `Suspend a ${kind}`,
    description:
      (kind === 'user'
        ? 'In all teams; their other members go on. '
        : 'For every member; their other teams go on. ') +
      'Everything but reads, terminate, detach and delete is then 403 with the reason. A second suspension replaces the first.',
    input: {
      [kind]: fields[kind],
      running: z
        .enum(runningAtSuspension)
        .default('keep')
        .meta({ description: 'What happens to its deployments: keep them, stop them, or end them.' }),
      reason: reasonField,
    } as {
      running: z.ZodDefault<z.ZodEnum<{ keep: 'keep'; stop: 'stop'; end: 'end' }>>;
      reason: typeof reasonField;
    },
    example: { running: 'stop', reason: 'mining from stolen cards' },
    reply: ['The effect.', planSchema],
    audit: ({ running, reason, ...of }) => ({
      action: `${kind}.suspend`,
      subject: named(of),
      detail: { running, reason },
      done: ({ id: subject }) => ({ subject }),
    }),
    dryRun: async ({ store: { read } }: Deps, { running, ...of }) =>
      planOf(read, await findSuspendable(read, kind, named(of)), effectOf(running), false),
    run: ({ store, ...deps }: Deps, { running, reason, ...of }, { name: by }) =>
      store.transact(async (tx) => {
        const found = await findSuspendable(tx, kind, named(of));
        await suspend(deps, tx, found, { running, reason: requireReason(reason), by });
        return planOf(tx, found, effectOf(running), true);
      }),
    commands: [
      {
        name: `${kind}s suspend`,
        description: `refuse a ${kind} everything but reads, terminate, detach and delete`,
        args: { [kind]: [kind === 'user' ? '<email>' : '<team>'] },
        flags: {
          running: ['--running <what>', 'what happens to its deployments', { default: 'keep' }],
          reason: ['--reason <text>', 'why; the customer reads it'],
        },
        toText,
      },
    ],
    form: {
      title: (input) => `Suspend ${named(input)}`,
      button: 'Suspend',
      isDangerous: true,
      reason: WHO_READS_IT,
      inRows: inRowsOf(kind, false),
      page: (input) => pageOf(kind === 'team' ? named(input) : undefined),
      preview: ({ kind: what, name, deployments }) => [
        `The ${what} ${name} has ${counted(deployments, 'deployment')}.`,
      ],
    },
  });
}

function restoreAction<Kind extends 'user' | 'team'>(kind: Kind) {
  const named = (input: object): string => (input as Record<Kind, string>)[kind];
  const effect = (): string => 'everything is allowed again; what was stopped stays stopped';
  return defineAction({
    name: kind === 'user' ? ('restoreUser' as const) : ('restoreTeam' as const),
    tag: 'Actions',
    path: `/${kind}s/{${kind}}/restore`,
    summary: `Restore a suspended ${kind}`,
    description: 'What was stopped stays stopped until it is started.',
    input: { [kind]: fields[kind] },
    reply: ['The effect.', planSchema],
    audit: (of) => ({
      action: `${kind}.restore`,
      subject: named(of),
      done: ({ id: subject }) => ({ subject }),
    }),
    dryRun: async ({ store: { read } }: Deps, of) => {
      const found = await findSuspendable(read, kind, named(of));
      assertSuspended(found);
      return planOf(read, found, effect, false);
    },
    run: ({ store, ...deps }: Deps, of) =>
      store.transact(async (tx) => {
        const found = await findSuspendable(tx, kind, named(of));
        await restore(deps, tx, found);
        return planOf(tx, found, effect, true);
      }),
    commands: [
      {
        name: `${kind}s restore`,
        description: `end the suspension of a ${kind}`,
        args: { [kind]: [kind === 'user' ? '<email>' : '<team>'] },
        toText,
      },
    ],
    form: {
      title: (input) => `Restore ${named(input)}`,
      button: 'Restore',
      inRows: inRowsOf(kind, true),
      page: (input) => pageOf(kind === 'team' ? named(input) : undefined),
    },
  });
}

export const suspendUser = suspendAction('user');
export const suspendTeam = suspendAction('team');
export const restoreUser = restoreAction('user');
export const restoreTeam = restoreAction('team');
