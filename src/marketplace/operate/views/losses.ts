import { z } from 'zod';
import { timestampSchema } from '../../../contract/values.ts';
import { linkOfId } from '../../../operator-kit/columns.ts';
import { defineView } from '../../../operator-kit/operation.ts';
import { toTime } from '../../../operator-kit/views/values.ts';
import type { ViewDeps } from './pages.ts';

const lossesSchema = z
  .object({
    held: z.array(
      z.object({ id: z.string(), kind: z.string(), provider: z.string(), since: timestampSchema }),
    ),
  })
  .meta({ id: 'HeldLosses' });

export const lossesView = defineView({
  name: 'listLosses',
  tag: 'Views',
  path: '/losses',
  summary: 'Resources whose providers answer 404, held until an operator decides',
  description:
    'They keep their state, and are billed up to the last answer of their provider. The list of providers has the number that ended.',
  reply: ['The losses.', lossesSchema],
  commands: [
    {
      name: 'losses ls',
      description: 'list resources that providers answer 404 for, and that are held until you decide',
      list: {},
    },
  ],
  list: {
    rows: 'held',
    title: 'Held losses',
    about:
      'check the key and base_url of the provider; if all is really lost, accept its losses under Providers',
    none: 'Nothing is held.',
    columns: [{ field: 'id', page: ({ id }) => linkOfId(id) }, 'kind', 'provider', 'since'],
  },
  read: async ({ store: { read } }: Pick<ViewDeps, 'store'>) => {
    const held = await Promise.all(
      (await read.losses.providers()).map(async (provider) => {
        const ofProvider = await read.losses.held(provider);
        return ofProvider.map(({ subjectId: id, kind, at }) => ({ id, kind, provider, since: toTime(at) }));
      }),
    );
    return { held: held.flat() };
  },
});
