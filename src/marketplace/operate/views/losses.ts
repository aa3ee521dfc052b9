import { z } from 'zod';
import { timestampSchema } from '../../../contract/values.ts';
import { linkOfId } from '../../../operator-kit/columns.ts';
import { defineView } from '../../../operator-kit/operation.ts';
import { timeOrNullSchema, toTime } from '../../../operator-kit/views/values.ts';
import type { LossCapOptions } from '../../model/options.ts';
import { countLosses } from '../../providers/loss-cap.ts';
import type { ViewDeps } from './pages.ts';

const lossesSchema = z
  .object({
    providers: z.array(
      z.object({
        provider: z.string(),
        ended: z.int().meta({ description: 'Within the window of the cap.' }),
        cap: z.int(),
        held: z.int(),
        accepted_until: timeOrNullSchema,
      }),
    ),
    held: z.array(
      z.object({ id: z.string(), kind: z.string(), provider: z.string(), since: timestampSchema }),
    ),
  })
  .meta({ id: 'Losses' });

const HELD =
  'Held resources keep their state, and are billed up to the last answer of their provider. Check that the key and base_url of the ' +
  'provider are those of your account; if all of it is really lost: berth marketplace losses accept <provider>';

export const lossesView = defineView({
  name: 'listLosses',
  tag: 'Views',
  path: '/losses',
  summary: 'Resources that providers answer 404 for',
  description: 'How many ended, and those that are held until an operator decides.',
  reply: ['The losses.', lossesSchema],
  commands: [
    {
      name: 'losses ls',
      description: 'show resources that providers answer 404 for: how many ended, and which are held',
      toText: ({ providers, held }) =>
        providers.length === 0
          ? ['No provider answers 404 for a resource that was not deleted there.']
          : [providers, ...(held.length === 0 ? ['Nothing is held.'] : [held, HELD])],
    },
  ],
  list: {
    rows: 'held',
    title: 'Held losses',
    about: 'their providers answer 404; accept or wait: see Providers',
    none: 'Nothing is held.',
    columns: [{ field: 'id', page: ({ id }) => linkOfId(id) }, 'kind', 'provider', 'since'],
  },
  read: async ({ store: { read }, clock, maxLosses }: ViewDeps & { maxLosses: LossCapOptions }) => {
    const names = await read.losses.providers();
    const all = await Promise.all(
      names.map(async (provider) => ({
        provider,
        counts: await countLosses(read, provider, maxLosses, clock.now()),
        held: await read.losses.held(provider),
      })),
    );
    return {
      providers: all.map(({ provider, counts: { count, cap, held, acceptedUntil } }) => ({
        provider,
        ended: count,
        cap,
        held,
        accepted_until: toTime(acceptedUntil),
      })),
      held: all.flatMap(({ provider, held }) =>
        held.map(({ subjectId, kind, at }) => ({ id: subjectId, kind, provider, since: toTime(at) })),
      ),
    };
  },
});
