import { figureCards, rangeLinks, rangeOf } from '../../../operator-kit/console/figure-parts.ts';
import { html, named } from '../../../operator-kit/console/parts.ts';
import type { PageExtras } from '../../../operator-kit/console/view-pages.ts';
import { figures } from '../../operate/figures/figures.ts';
import { usageReaderOf } from '../../operate/figures/usage.ts';
import type { TeamDetail } from '../../operate/views/teams.ts';
import type { ConsoleDeps } from '../deps.ts';

type Below = NonNullable<PageExtras<ConsoleDeps>['below']>;

/** Revenue and failed launches of each provider. */
export const figuresOfProviders: Below = async ({ store, providers }, { query, now }) => {
  const range = rangeOf(query);
  const cards = (provider: string) =>
    figureCards([figures.revenue, figures.failures], {
      reader: store.read.figures,
      range,
      now,
      filter: { subject: provider },
      query: { provider },
    });
  return html`${rangeLinks('/console/providers', range)}${[...providers().keys()].map(
    async (id) => html`<h2>${named(id)}</h2>${await cards(id)}`,
  )}`;
};

/** What a team was charged, and a link to its statement. */
export const figuresOfTeam: Below = async ({ store: { read } }, { query, now }, reply) => {
  const { id } = reply as Pick<TeamDetail, 'id'>;
  const range = rangeOf(query);
  const shown = { reader: usageReaderOf(read, id, now), keptBy: read, range, now, query: { team: id } };
  return html`<p><a class="button" href="/console/statements/${encodeURIComponent(id)}">Its statement</a></p>
${rangeLinks(`/console/teams/${encodeURIComponent(id)}`, range)}${await figureCards([figures.revenue], shown)}`;
};
