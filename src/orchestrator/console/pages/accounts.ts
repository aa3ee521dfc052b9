import { actionLink } from '../../../operator-kit/console/action-pages.ts';
import { operatorKeyColumns } from '../../../operator-kit/console/operators-page.ts';
import {
  ago,
  badge,
  type Column,
  count,
  html,
  live,
  named,
  table,
  withQuery,
} from '../../../operator-kit/console/parts.ts';
import { listOperatorKeys } from '../../../operator-kit/views/keys.ts';
import { deleteAccountAction, disableAccountAction } from '../../operate/actions/close-account.ts';
import { type AccountRow, type ApiKeyRow, listAccounts, listApiKeys } from '../../operate/views/accounts.ts';
import type { Page } from '../deps.ts';

/** The tenants with their keys, and the operator keys. Keys are made on the command line, which shows them once. */
export const accountsPage: Page = async ({ store: { read } }, { now }) => {
  const [accounts, keys, operators] = await Promise.all([
    listAccounts(read),
    listApiKeys(read, now),
    listOperatorKeys(read),
  ]);
  return {
    title: 'Accounts',
    body: html`<h1>Accounts and keys</h1>
${live('accounts', html`<h2>Accounts</h2>${table(accountsAt(now), accounts, 'No accounts.')}`)}
${live('keys', html`<h2>Their API keys</h2>${table(keysAt(now), keys, 'No keys. `berth keys create` creates one.')}`)}
${live('operators', html`<h2>Operators’ keys</h2>${table(operatorKeyColumns(now), operators, 'No operator keys.')}`)}`,
  };
};

function accountsAt(now: number): readonly Column<AccountRow>[] {
  return [
    { head: 'Account', cell: ({ name }) => named(name) },
    { head: 'Id', cell: ({ id }) => html`<code>${id}</code>` },
    {
      head: 'Instances',
      cell: ({ id, instances }) =>
        html`<a href="${withQuery('/console/instances', { account: id })}">${count(instances)}</a>`,
      isNumber: true,
    },
    { head: 'Password', cell: ({ has_password }) => (has_password ? 'yes' : 'no') },
    { head: 'Created', cell: ({ created_at }) => ago(created_at, now) },
    {
      head: 'Deleted',
      cell: ({ closed_at }) => ago(closed_at, now),
    },
    {
      head: 'Action',
      cell: ({ id, closed_at }) =>
        html`${closed_at === null ? actionLink(disableAccountAction, 'Disable', { account: id }) : ''} ${actionLink(deleteAccountAction, 'Delete', { account: id })}`,
    },
  ];
}

function keysAt(now: number): readonly Column<ApiKeyRow>[] {
  return [
    { head: 'State', cell: ({ state }) => badge(state, state === 'valid' ? 'good' : 'none') },
    { head: 'Key', cell: ({ key }) => html`<code>${key}</code>` },
    { head: 'Account', cell: ({ account }) => named(account) },
    { head: 'Label', cell: ({ label }) => named(label) },
    { head: 'Created', cell: ({ created_at }) => ago(created_at, now) },
    { head: 'Ends', cell: ({ expires_at }) => ago(expires_at, now) },
    { head: 'Last used', cell: ({ last_used_at }) => ago(last_used_at, now) || 'never' },
  ];
}
