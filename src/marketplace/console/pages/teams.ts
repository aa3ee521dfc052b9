import { counted } from '../../../contract/counted.ts';
import { usdToDollars } from '../../../contract/values.ts';
import { figureCards, rangeLinks, rangeOf } from '../../../operator-kit/console/figure-parts.ts';
import {
  ago,
  type Column,
  count,
  facts,
  html,
  live,
  named,
  table,
  withQuery,
} from '../../../operator-kit/console/parts.ts';
import { figures } from '../../operate/figures/figures.ts';
import { usageReaderOf } from '../../operate/figures/usage.ts';
import { listTeams, readTeam, type TeamDetail, type TeamRow } from '../../operate/views/teams.ts';
import type { Page } from '../deps.ts';
import { billLink, hoursLeft, teamLink } from '../parts.ts';

const MAX_TEXT = 200;
const PATH = '/console/teams';

export const burnColumns: readonly Column<TeamRow>[] = [
  {
    head: 'Team',
    cell: ({ id, slug, name }) => html`${teamLink(id, slug)}<span class="why">${named(name)}</span>`,
  },
  'owner',
  'balance_usd',
  {
    head: 'Per hour',
    cell: ({ burn_usd_per_hour: usd }) => (usd === 0 ? '' : usdToDollars(usd)),
    isNumber: true,
  },
  { head: 'Lasts', cell: ({ hours_left: hours }) => hoursLeft(hours) },
  { head: 'Billed', cell: ({ billed }) => (billed === 0 ? '' : count(billed)), isNumber: true },
];

/** Teams with their balances: spending teams first to run out, or all teams with a text search. */
export const teamsPage: Page = async ({ store: { read } }, { query, now }) => {
  const q = query('q')?.slice(0, MAX_TEXT);
  const isAll = query('all') === 'yes' || q !== undefined;
  const { teams, next } = await listTeams(read, { text: q, isSpending: !isAll, after: query('after') }, now);
  const order = isAll ? 'by name' : 'billed now, first to run out first';
  return {
    title: 'Teams',
    body: html`<div class="head"><h1>Teams</h1><span class="soft">${order}</span></div>
<form class="card filter" action="${PATH}">
<label class="field grow"><span>Id, slug or name</span><input type="search" name="q" value="${q ?? ''}"></label>
<button class="primary">Find</button><a class="button" href="${PATH}?all=yes">All</a><a class="button" href="${PATH}">Billed now</a></form>
${live('teams', table(burnColumns, teams, 'No teams found.'))}
${next === null ? '' : html`<nav class="pager"><a class="button" rel="next" href="${withQuery(PATH, { q, all: 'yes', after: next })}">Next »</a></nav>`}`,
  };
};

/** One team: how long its balance lasts, what it pays for, and its newest ledger transactions. */
export const teamPage: Page = async ({ store: { read } }, { params, query, now }) => {
  const team = await readTeam(read, params['id'] ?? '', now);
  if (team === null) return null;
  const { id, slug, name } = team;
  const range = rangeOf(query);
  const cards = await figureCards([figures.revenue], {
    reader: usageReaderOf(read, id, now),
    keptBy: read,
    range,
    now,
    query: { team: id },
  });
  return {
    title: slug,
    body: html`<div class="head" id="head" data-live><h1>${named(name)}</h1>${hoursLeft(team.hours_left)}<span class="soft mono">${id}</span>${rangeLinks(`/console/teams/${id}`, range)}</div>
<div class="columns">
${live(
  'money',
  html`<h2>Money</h2>${facts([
    ['Balance', usdToDollars(team.balance_usd)],
    ['Cost per hour, before discounts', usdToDollars(team.burn_usd_per_hour)],
    ['Balance lasts', team.hours_left === null ? 'nothing is billed' : counted(team.hours_left, 'hour')],
    ['At zero since', ago(team.exhausted_at, now)],
    ['Created', ago(team.created_at, now)],
  ])}<p><a href="/console/deployments?team=${encodeURIComponent(id)}">its deployments</a></p>`,
)}
${live('members', html`<h2>Members</h2>${table(['email', 'name', 'role'], team.members, 'No members.')}`)}
</div>
${cards}
${live('pays', html`<h2>Billed now</h2>${table(paidColumns, team.pays_for, 'Nothing is billed now.', now)}`)}
${live('booked', html`<h2>Latest bookings</h2>${table(['at', 'kind', 'memo', 'reference'], team.booked, 'No bookings.')}`)}`,
  };
};

const paidColumns: readonly Column<TeamDetail['pays_for'][number]>[] = [
  { head: 'Resource', cell: ({ id, kind }) => html`${billLink(id, id)}<span class="why">${kind}</span>` },
  'state',
  'usd_per_hour',
  'since',
  'taken_usd',
];
