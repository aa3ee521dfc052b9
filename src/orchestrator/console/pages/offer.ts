import { figureCards, rangeLinks, rangeOf } from '../../../operator-kit/console/figure-parts.ts';
import { html, named, withQuery } from '../../../operator-kit/console/parts.ts';
import { figures } from '../../operate/figures/figures.ts';
import type { Page } from '../deps.ts';

/** An offer over time, also one that has left the catalog. */
export const offerPage: Page = async ({ store, catalog }, { params, query, now }) => {
  const { id = '' } = params;
  const region = query('region');
  const offer = catalog.offers.get(id);
  const path = withQuery(`/console/offers/${encodeURIComponent(id)}`, { region });
  const range = rangeOf(query);
  const filter = { labels: { offer: id, region } };
  const asked = { offer: id, ...(region !== undefined && { region }) };
  const { units, earned, creates, onlineTime, failures } = figures;
  const cards = await figureCards([units, earned, creates, onlineTime, failures], {
    reader: store.read.figures,
    range,
    now,
    filter,
    query: asked,
  });
  return {
    title: id,
    body: html`<div class="head"><h1>${named(id)}</h1><span class="soft">${named(offer?.name)}</span>
<span class="soft">${region === undefined ? 'all regions' : named(region)}</span>
${offer === undefined ? html`<span class="soft">not in the catalog</span>` : html`<a href="${withQuery('/console/cordons', { kind: 'offer', name: id })}">cordon</a>`}
<a href="${withQuery('/console/instances', { offer: id, region })}">its instances</a>${rangeLinks(path, range)}</div>
${cards}`,
  };
};
