import { actionLink } from '../../../operator-kit/console/action-pages.ts';
import { operatorKeyColumns } from '../../../operator-kit/console/operators-page.ts';
import { type Column, count, html, live, table, withQuery } from '../../../operator-kit/console/parts.ts';
import { listOperatorKeys } from '../../../operator-kit/views/keys.ts';
import { deleteAccountAction } from '../../operate/actions/close-account.ts';
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
${live('accounts', html`<h2>Accounts</h2>${table(accountColumns, accounts, 'No accounts.', now)}`)}
${live('keys', html`<h2>Their API keys</h2>${table(keyColumns, keys, 'No keys: create one with berth keys create.', now)}`)}
${live('operators', html`<h2>Operators’ keys</h2>${table(operatorKeyColumns, operators, 'No operator keys.', now)}`)}`,
  };
};

const accountColumns: readonly Column<AccountRow>[] = [
  'name',
  'id',
  {
    head: 'Instances',
    cell: ({ id, instances }) =>
      html`<a href="${withQuery('/console/instances', { account: id })}">${count(instances)}</a>`,
    isNumber: true,
  },
  'has_password',
  'created_at',
  'closed_at',
  {
    head: 'Action',
    cell: ({ id }) => actionLink(deleteAccountAction, 'Delete', { account: id }),
  },
];

const keyColumns: readonly Column<ApiKeyRow>[] = [
  'state',
  'key',
  'account',
  'label',
  'created_at',
  'expires_at',
  'last_used_at',
];
