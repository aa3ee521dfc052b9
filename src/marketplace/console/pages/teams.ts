import { counted } from '../../../contract/counted.ts';
import { usdToDollars } from '../../../contract/values.ts';
import { actionLink } from '../../../operator-kit/console/action-pages.ts';
import {
  ago,
  type Column,
  count,
  facts,
  given,
  type Html,
  html,
  live,
  named,
  table,
  withQuery,
} from '../../../operator-kit/console/parts.ts';
import { runningAtSuspension } from '../../model/people.ts';
import { deleteVolume } from '../../operate/orders.ts';
import { restoreTeam, restoreUser, suspendTeam, suspendUser } from '../../operate/suspensions.ts';
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
export const teamPage: Page = async ({ store: { read } }, { params, now }) => {
  const team = await readTeam(read, params['id'] ?? '', now);
  if (team === null) return null;
  const { id, slug, name } = team;
  return {
    title: slug,
    body: html`<div class="head" id="head" data-live><h1>${named(name)}</h1>${hoursLeft(team.hours_left)}<span class="soft mono">${id}</span></div>
${live('suspended', team.suspended === null ? '' : html`<div class="notice bad"><h2>Suspended</h2><p>${given(team.suspended)}</p></div>`, '')}
<div class="columns">
${live(
  'money',
  html`<h2>Money</h2>${facts([
    ['Balance', usdToDollars(team.balance_usd)],
    ['Cost per hour, before discounts', usdToDollars(team.burn_usd_per_hour)],
    ['Balance lasts', team.hours_left === null ? 'nothing is billed' : counted(team.hours_left, 'hour')],
    ['At zero since', ago(team.exhausted_at, now)],
    ['Members may change', team.member_rights === 'all' ? 'everything of the team' : 'what they made'],
    ['Created', ago(team.created_at, now)],
  ])}<p><a href="/console/deployments?team=${encodeURIComponent(id)}">its deployments</a> · <a href="/console/statements/${encodeURIComponent(id)}">its statement</a></p>${suspensionLinks('team', id, team.suspended)}`,
)}
${live('members', html`<h2>Members</h2>${table(memberColumns, team.members, 'No members.')}`)}
</div>
${live('pays', html`<h2>Billed now</h2>${table(paidColumns, team.pays_for, 'Nothing is billed now.', now)}`)}
${live('booked', html`<h2>Latest bookings</h2>${table(['at', 'kind', 'memo', 'reference'], team.booked, 'No bookings.')}`)}`,
  };
};

const memberColumns: readonly Column<TeamDetail['members'][number]>[] = [
  'email',
  'name',
  'role',
  {
    head: 'Suspended',
    cell: ({ email, suspended }) =>
      html`${suspended === null ? '' : given(suspended)} ${suspensionLinks('user', email, suspended)}`,
  },
];

/** Links to the plans of a suspension, or of its end. */
function suspensionLinks(kind: 'user' | 'team', named: string, suspended: string | null): Html {
  const [action, restore] = kind === 'user' ? [suspendUser, restoreUser] : [suspendTeam, restoreTeam];
  if (suspended !== null) return actionLink(restore, 'Restore', { [kind]: named });
  return html`${runningAtSuspension.map((running) =>
    actionLink(action, suspendWords[running], { [kind]: named, running }),
  )}`;
}

const suspendWords = {
  keep: 'Suspend',
  stop: 'Suspend and stop',
  end: 'Suspend and terminate',
} as const;

const paidColumns: readonly Column<TeamDetail['pays_for'][number]>[] = [
  { head: 'Resource', cell: ({ id, kind }) => html`${billLink(id, id)}<span class="why">${kind}</span>` },
  'state',
  'usd_per_hour',
  'since',
  'taken_usd',
  {
    head: 'Action',
    cell: ({ id, kind }) => (kind === 'volume' ? actionLink(deleteVolume, 'Delete', { volumeId: id }) : ''),
  },
];
