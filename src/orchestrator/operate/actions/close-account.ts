import { z } from 'zod';
import { counted } from '../../../contract/counted.ts';
import { within } from '../../../operator-kit/audit.ts';
import { defineAction } from '../../../operator-kit/operation.ts';
import type { Clock } from '../../../ports/clock.ts';
import { DEFAULT_ACCOUNT } from '../../accounts/accounts.ts';
import { onBehalfOf } from '../../accounts/authenticate.ts';
import { destroyInstance } from '../../instances/destroy.ts';
import type { AccountRecord } from '../../model/records.ts';
import type { Store, Transaction } from '../../model/store.ts';
import { deleteVolume } from '../../volumes/delete.ts';
import { type AccountRow, findAccount } from '../views/accounts.ts';
import { toRequestedBy } from './instances.ts';
import { ActionRefused } from './refused.ts';

interface Deps {
  store: Store;
  clock: Clock;
  /** The operator who closes it. */
  by?: string;
}

/** The state of a closed account. */
interface Closed {
  /** How many instances, and then volumes, are being deleted. */
  instances: number;
  volumes: number;
  /** Whether the row of the account is deleted. */
  isDeleted: boolean;
}

const closingSchema = z
  .object({
    account: z.string(),
    id: z.string(),
    instances: z.int().meta({ description: 'Instances deleted with it.' }),
    volumes: z.int().meta({ description: 'Volumes deleted with it, once its instances are gone.' }),
    deleted: z.boolean().meta({ description: 'Whether its row is gone.' }),
    effect: z.string().meta({ description: 'The effect, in a sentence.' }),
    done: z.boolean().meta({ description: 'False: a dry run; nothing has changed.' }),
  })
  .meta({ id: 'AccountClosing' });

type ClosingPlan = z.output<typeof closingSchema>;

export const deleteAccountAction = defineAction({
  name: 'deleteAccount',
  tag: 'Accounts',
  needs: 'admin',
  path: '/accounts/{account}/delete',
  summary: 'Permanently delete an account',
  description:
    'Its instances are deleted, then its volumes: repeat the request until `deleted`. It cannot get a new key. Its row and its name stay as long as the rows of its resources. A key that a server reads from BERTH_API_KEY ends with it.',
  input: {
    account: z.string().meta({ description: 'The name or the id of an account.' }),
    drain: z.boolean().default(false).meta({
      description:
        'Delete its instances with their disks, then its volumes. False: refused while it has any.',
    }),
  },
  example: { drain: true },
  reply: ['The effect.', closingSchema],
  commands: [
    {
      name: 'accounts rm',
      description: 'end an account for good; refused while it has instances or volumes',
      args: { account: ['<name>'] },
      flags: {
        drain: [
          '--drain',
          'delete its instances first, with their disks, and then its volumes: run it again until it is done',
        ],
      },
      toData: ({ account: name, deleted, instances, volumes }) => ({ name, deleted, instances, volumes }),
      toText: describeDeleted,
    },
  ],
  form: {
    title: ({ account }) => `Delete account ${account}`,
    button: 'Delete it',
    isDangerous: true,
    page: () => '/console/accounts',
    inRows: {
      of: 'listAccounts',
      fields: ({ id, closed_at: closedAt, instances }: AccountRow) =>
        closedAt === null || instances > 0 ? { account: id } : undefined,
    },
    preview: ({ account }) => [`Account ${account}:`],
    dryRunWith: { drain: true },
    // If the account has no resources, `drain` is not set: resources created meanwhile were not shown, so the action
    // is refused.
    send: ({ id, instances, volumes }) => ({
      account: id,
      drain: instances + volumes > 0 ? 'yes' : undefined,
    }),
  },
  audit: async ({ account, drain }, { store: { read } }: Deps) => ({
    action: 'account.delete',
    subject: (await findAccount(read, account))?.name ?? account,
    detail: { drain },
  }),
  dryRun: async ({ store: { read } }: Deps, { account, drain }) => {
    const { id, name } = await find(read, account);
    const instances = await read.instances.countFound({ accountId: id });
    const volumes = (await read.volumes.liveOf(id)).length;
    assertDrained(name, { instances, volumes }, drain);
    const effect = effectOf({ instances, volumes });
    return { account: name, id, instances, volumes, deleted: false, effect, done: false };
  },
  run: async ({ store, clock }: Deps, { account, drain }, actor) => {
    const { id, name } = await store.transact((tx) => find(tx, account));
    const inside = { clock, by: actor.name, store: onBehalfOf({ store, clock }, toRequestedBy(actor)) };
    const { isDeleted, ...ended } = await deleteAccount(inside, name, { drain });
    return { account: name, id, ...ended, deleted: isDeleted, effect: effectOf(ended), done: true };
  },
});

function describeDeleted({ account, instances, volumes, deleted, effect, done }: ClosingPlan): string[] {
  if (!done) return [`Plan for account ${account}: ${effect}.`];
  if (deleted) return [`Account ${account} is deleted.`];
  const ended = `Account ${account} no longer has access.`;
  const left = `${counted(instances, 'instance')} and ${counted(volumes, 'volume')}`;
  return instances + volumes > 0
    ? [`${ended} Still being deleted: ${left}. Run it again.`]
    : [
        `${ended} Its row and its name are removed with those of its deleted instances and volumes (retention.tombstones_days).`,
      ];
}

/** @throws {ActionRefused} */
async function find(read: Parameters<typeof findAccount>[0], nameOrId: string): Promise<AccountRecord> {
  const found = await findAccount(read, nameOrId);
  if (found === null) throw noAccount(nameOrId);
  return found;
}

function effectOf({ instances, volumes }: Pick<Closed, 'instances' | 'volumes'>): string {
  const machines =
    instances > 0 ? `, and its ${counted(instances, 'instance')} will be deleted with all disks` : '';
  const storage = volumes > 0 ? `, its ${counted(volumes, 'volume')} after that` : '';
  return `its keys, password and tokens stop working${machines}${storage}; it cannot get a new key, and its row and its name are deleted once the rows of all its resources are gone`;
}

/**
 * Closes an account at once and for good. With `drain` it deletes its instances, or its volumes if it has no instances:
 * repeat the call until both are gone. The account's row stays while rows of its resources exist, since a 404 is sent
 * only to their owner. Housekeeping deletes it then.
 *
 * @throws {ActionRefused} if it has instances or volumes and `drain` is false
 */
export async function deleteAccount(
  deps: Deps,
  name: string,
  { drain }: { drain: boolean },
): Promise<Closed> {
  return deps.store.transact(async (tx) => {
    const account = await lockAccount(tx, name);
    const instances = await deleteInstances(deps, tx, account, drain);
    const volumes = await deleteVolumes(deps, tx, account, { drain, areHeld: instances > 0 });
    const now = deps.clock.now();
    await tx.credentials.endAccess(account.id, now);
    await tx.credentials.closeAccount(account.id, now);
    if (account.name === DEFAULT_ACCOUNT) await tx.marks.put('default_account_closed', now);
    const isDeleted = instances + volumes === 0 && (await tx.credentials.deleteAccount(account.id));
    return { instances, volumes, isDeleted };
  });
}

function noAccount(nameOrId: string): ActionRefused {
  return new ActionRefused(`There is no account "${nameOrId}": see \`berth accounts ls\`.`, 'not_found');
}

/** @throws {ActionRefused} if it has resources and `drain` is false */
function assertDrained(
  name: string,
  { instances, volumes }: Pick<Closed, 'instances' | 'volumes'>,
  drain: boolean,
): void {
  if (drain || instances + volumes === 0) return;
  const what = instances > 0 ? counted(instances, 'instance') : counted(volumes, 'volume');
  throw new ActionRefused(
    `Account "${name}" has ${what}: delete them first, or delete them together with the account: \`--drain\`, or "drain": true in the operators' API.`,
  );
}

/** Locks the account, so that it cannot get new resources meanwhile. */
async function lockAccount(tx: Transaction, name: string): Promise<AccountRecord> {
  const account = await tx.credentials.accountByName(name);
  if (account === null) throw noAccount(name);
  await tx.accountUse.lockToClose(account.id);
  return account;
}

/** Deletes its instances. Returns how many there are. */
async function deleteInstances(
  { store, clock, by = 'operator' }: Deps,
  tx: Transaction,
  { id: accountId, name }: AccountRecord,
  drain: boolean,
): Promise<number> {
  const live = await tx.instances.list({ accountId });
  assertDrained(name, { instances: live.length, volumes: 0 }, drain);
  // Ordered by id, as rows are locked.
  for (const id of live.map((record) => record.id).sort())
    await destroyInstance({ store: within(store, tx), clock }, accountId, id, { reason: 'operator', by });
  return live.length;
}

/** Deletes its volumes, unless instances may still use them. Returns how many there are. */
async function deleteVolumes(
  { store, clock, by = 'operator' }: Deps,
  tx: Transaction,
  { id: accountId, name }: AccountRecord,
  { drain, areHeld }: { drain: boolean; areHeld: boolean },
): Promise<number> {
  const live = await tx.volumes.liveOf(accountId);
  assertDrained(name, { instances: 0, volumes: live.length }, drain);
  if (!areHeld)
    for (const { id } of live)
      await deleteVolume({ store: within(store, tx), clock }, accountId, id, { reason: 'operator', by });
  return live.length;
}
