import { z } from 'zod';
import { type InstanceStatus, instanceStatusSchema } from '../../../contract/instance.ts';
import { timestampSchema } from '../../../contract/values.ts';
import { linkOfId, type Tone } from '../../../operator-kit/columns.ts';
import { isShortId } from '../../../operator-kit/complete-id.ts';
import { defineView } from '../../../operator-kit/operation.ts';
import { cutPage, limitSchema, nextSchema, toTime, USUAL_PAGE } from '../../../operator-kit/views/values.ts';
import { Fatal } from '../../../ports/errors.ts';
import type { InstanceRecord } from '../../model/records.ts';
import type { InstanceSearch, ListedInstance, Reader, Store } from '../../model/store.ts';
import { idOfAccount } from './accounts.ts';

/** An instance in the list of the operator API. */
export const instanceRowSchema = z
  .object({
    id: z.string(),
    name: z.string().nullable(),
    status: instanceStatusSchema,
    offer: z.string(),
    region: z.string(),
    platform: z.string(),
    host: z.string().nullable().meta({ description: 'Null: not reported by the platform.' }),
    account: z.string().meta({ description: 'Its name.' }),
    account_id: z.string(),
    created_at: timestampSchema,
    updated_at: timestampSchema,
    error: z.string().nullable(),
  })
  .meta({ id: 'InstanceRow' });
export type InstanceRow = z.infer<typeof instanceRowSchema>;

const instancePageSchema = z
  .object({
    instances: z.array(instanceRowSchema),
    total: z.int().meta({ description: 'Number of results on all pages.' }),
    next: nextSchema,
  })
  .meta({ id: 'InstancePage' });
export type InstancePage = z.infer<typeof instancePageSchema>;

/** Filters and page of the list. `after` is the `next` of the previous page. */
export interface InstanceQuery extends InstanceSearch {
  order?: 'oldest' | 'newest' | undefined;
  after?: string | undefined;
  limit?: number | undefined;
}

/**
 * The instances that are not destroyed, page by page. Inserts and deletes meanwhile do not move other instances to
 * another page.
 */
async function listInstances(
  read: Pick<Reader, 'instances' | 'credentials'>,
  { order = 'oldest', after, limit = USUAL_PAGE, ...of }: InstanceQuery,
): Promise<InstancePage> {
  const place = after === undefined ? undefined : toPlace(after);
  const [found, total, nameOf] = await Promise.all([
    read.instances.search({ ...of, order, limit: limit + 1, ...(place !== undefined && { after: place }) }),
    read.instances.countFound(of),
    accountNames(read),
  ]);
  const { rows, next } = cutPage(found, limit, ({ createdAt, id }) => `${createdAt}.${id}`);
  return { instances: rows.map((record) => toInstanceRow(record, nameOf(record.accountId))), total, next };
}

const AFTER = /^(\d{1,15})\.(.{1,200})$/;

/** Whether the text has the form of a page's `next`. */
function isAfter(text: string): boolean {
  return AFTER.test(text);
}

function toPlace(text: string): ListedInstance | undefined {
  const [, createdAt, id] = AFTER.exec(text) ?? [];
  return createdAt === undefined || id === undefined ? undefined : { createdAt: Number(createdAt), id };
}

/** Returns a function from an account's id to its name, or to the id if the account is gone. */
export async function accountNames({
  credentials,
}: Pick<Reader, 'credentials'>): Promise<(id: string) => string> {
  const names = new Map((await credentials.listAccounts()).map(({ id, name }) => [id, name]));
  return (id) => names.get(id) ?? id;
}

/**
 * The instances that match an operator's argument: the one with that id, or else those with that name or whose id begins
 * so that are not destroyed.
 */
async function findInstances(
  read: Pick<Reader, 'instances' | 'credentials'>,
  idOrName: string,
): Promise<InstanceRow[]> {
  const record = await read.instances.byId(idOrName);
  if (record === null) {
    const { instances } = await listInstances(read, { name: idOrName });
    if (instances.length > 0 || !isShortId(idOrName)) return instances;
    return (await listInstances(read, { idPrefix: idOrName })).instances;
  }
  return [toInstanceRow(record, (await accountNames(read))(record.accountId))];
}

export function toInstanceRow(record: InstanceRecord, account: string): InstanceRow {
  return {
    id: record.id,
    name: record.name,
    status: record.status,
    offer: record.offerId,
    region: record.region,
    platform: record.platform,
    host: record.host,
    account,
    account_id: record.accountId,
    created_at: toTime(record.createdAt),
    updated_at: toTime(record.updatedAt),
    error: record.error,
  };
}

const TONES: Readonly<Record<InstanceStatus, Tone>> = {
  PROVISIONING: 'busy',
  ONLINE: 'good',
  STOPPING: 'busy',
  STOPPED: 'none',
  OFFLINE: 'wait',
  DESTROYING: 'busy',
  DESTROYED: 'none',
  ERROR: 'bad',
};

export function toneOf({ status }: { status: InstanceStatus }): Tone {
  return TONES[status];
}

interface Deps {
  store: Pick<Store, 'read'>;
}

export const instancesView = defineView({
  name: 'findInstances',
  tag: 'Instances',
  path: '/instances',
  summary: 'Instances of all accounts, page by page',
  description:
    'Instances that are not destroyed. `q` searches id, name, owner ref, endpoint, error and cause of failure.',
  input: {
    account: z.string().optional().meta({ description: 'The name or the id of an account.' }),
    status: instanceStatusSchema.exclude(['DESTROYED']).optional(),
    offer: z.string().optional(),
    region: z.string().optional(),
    platform: z.string().optional(),
    host: z.string().optional(),
    q: z.string().max(200).optional(),
    order: z.enum(['oldest', 'newest']).optional(),
    after: z.string().refine(isAfter, 'expected the `next` value of a page').optional(),
    limit: limitSchema,
  },
  errors: ['not_found'],
  reply: ['One page.', instancePageSchema],
  commands: [
    {
      name: 'instances ls',
      description: 'list the instances that are not destroyed, the oldest first',
      flags: {
        account: ['--account <account>', 'those of one account, by its name or id'],
        region: ['--region <token>', 'those of one region'],
        offer: ['--offer <id>', 'those of one offer'],
        q: [
          '--find <text>',
          'those with this text in the id, name, owner ref, endpoint, error or failure cause',
        ],
        status: ['--status <status>', 'those with one status'],
      },
      list: {},
    },
  ],
  list: {
    rows: 'instances',
    title: 'Instances',
    none: 'There is no such instance.',
    usual: { order: 'newest' },
    columns: [
      { field: 'id', title: 'instance', kind: 'id', page: ({ id }) => linkOfId(id) },
      { field: 'name', under: 'id' },
      { field: 'status', tone: toneOf },
      'offer',
      { field: 'region', under: 'offer' },
      'platform',
      { field: 'host', under: 'platform' },
      'account',
      'created_at',
      { field: 'updated_at', isWide: true },
      { field: 'error', under: 'id' },
    ],
  },
  read: async ({ store: { read } }: Deps, { account, offer: offerId, q: text, ...query }) =>
    listInstances(read, { ...query, accountId: await idOfAccount(read, account), offerId, text }),
});

/**
 * Finds the id of an instance by its id, the beginning of its id or its name. An unknown text is returned unchanged: an instance that was destroyed
 * long ago still has a history under its id.
 * @throws {Fatal} with the candidates, if there are several
 */
export async function findInstanceId(
  read: Pick<Reader, 'instances' | 'credentials'>,
  idOrName: string,
): Promise<string> {
  const [first, ...others] = await findInstances(read, idOrName);
  if (first === undefined) return idOrName;
  if (others.length === 0) return first.id;
  const candidates = [first, ...others].map(
    ({ id, status, account, region }) => `${id} (${status}, account ${account}, ${region})`,
  );
  throw new Fatal(
    `${candidates.length} instances match ${idOrName}: ${candidates.join(', ')}. Give the id of the one that you mean.`,
  );
}
