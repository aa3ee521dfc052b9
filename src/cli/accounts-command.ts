import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { Command } from 'commander';
import { counted } from '../contract/counted.ts';
import { audited } from '../operators/audit.ts';
import { createAccount, setPassword } from '../orchestrator/accounts/accounts.ts';
import { type ClosingPlan, closeAccount } from '../orchestrator/operate/actions/close-account.ts';
import { type AccountRow, listAccounts } from '../orchestrator/operate/views/accounts.ts';
import { printError } from '../runtime/print.ts';
import { localActor } from './local-actor.ts';
import { onDatabase } from './orchestrator-database.ts';
import {
  fieldColumns,
  type ListFlags,
  type OutputFlag,
  printDone,
  printRecords,
  withList,
  withNames,
  withOutput,
} from './print-records.ts';

/** `berth accounts`: tenants that cannot see each other. */
export function accountsCommand(): Command {
  const accounts = new Command('accounts');
  withOutput(
    onDatabase(
      accounts.command('create <name>'),
      async (deps, name: string, flags: OutputFlag & { id?: string }) => {
        const action = { action: 'account.create', subject: name };
        const { id } = await audited(deps, localActor(), action, (store) =>
          createAccount({ ...deps, store }, name, flags.id),
        );
        const sentence = `Account ${name} (${id}) is created. Give it a key: berth keys create --account ${name}`;
        printDone(flags, { id, name }, sentence);
      },
    ),
  )
    .description('create an account')
    .option('--id <id>', 'the former id of an account that is missing from a restored database');
  withList(
    onDatabase(accounts.command('ls'), async ({ store }, flags: ListFlags) => {
      printRecords(await listAccounts(store.read), accountColumns, flags, 'There is no account.');
    }),
  ).description('list the accounts');
  withOutput(
    onDatabase(accounts.command('set-password <name>'), async (deps, name: string, flags: OutputFlag) => {
      const password = await readPassword();
      const action = { action: 'account.set_password', subject: name };
      await audited(deps, localActor(), action, (store) => setPassword({ ...deps, store }, name, password));
      printDone(flags, { name }, `The password of account ${name} is set.`);
    }),
  ).description(
    'set the password for POST /auth/token, read from the terminal or from standard input; tokens bought with the old one end',
  );
  const closing = { drain: 'delete its instances first, with their disks' };
  withOutput(
    onDatabase(accounts.command('disable <name>'), async (deps, name: string, flags: DrainFlag) => {
      const { drain = false } = flags;
      const order = { account: name, closing: 'disable', drain, isDone: true } as const;
      const { instances } = await closeAccount(deps, localActor(), order);
      printDone(
        flags,
        { name, deleted: false, instances },
        `Account ${name} has no access until it gets a key or a password.`,
        'A key from BERTH_API_KEY stays valid: remove it from the environment of the server and restart it.',
        ...(instances > 0 ? [`Being deleted: ${counted(instances, 'instance')}.`] : []),
      );
    }),
  )
    .description(
      'end all keys, the password and the tokens of an account; refused while it has instances, because it could no longer delete them',
    )
    .option('--drain', closing.drain);
  withOutput(
    onDatabase(accounts.command('rm <name>'), async (deps, name: string, flags: DrainFlag) => {
      const { drain = false } = flags;
      const order = { account: name, closing: 'delete', drain, isDone: true } as const;
      const closed = await closeAccount(deps, localActor(), order);
      const { instances, volumes, isDeleted } = closed;
      printDone(flags, { name, deleted: isDeleted, instances, volumes }, tellDeleted(name, closed));
    }),
  )
    .description('end an account for good; refused while it has instances or volumes')
    .option('--drain', `${closing.drain}, and then its volumes: run it again until it is done`);
  return accounts;
}

interface DrainFlag extends OutputFlag {
  drain?: boolean;
}

function tellDeleted(name: string, { instances, volumes, isDeleted }: ClosingPlan): string {
  if (isDeleted) return `Account ${name} is deleted.`;
  const ended = `Account ${name} no longer has access.`;
  return instances + volumes > 0
    ? `${ended} Still being deleted: ${counted(instances, 'instance')} and ${counted(volumes, 'volume')}. Run it again.`
    : `${ended} Its row and its name are removed with those of its deleted instances and volumes (retention.tombstones_days).`;
}

const accountColumns = withNames(
  fieldColumns<AccountRow>({
    ID: 'id',
    NAME: 'name',
    PASSWORD: 'has_password',
    CREATED: 'created_at',
    INSTANCES: 'instances',
    DELETED: 'closed_at',
  }),
  'name',
);

/** Reads one line of standard input. A terminal does not echo it. */
async function readPassword(): Promise<string> {
  const { stdin } = process;
  if (stdin.isTTY) printError('New password: ');
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: stdin, output: silent, terminal: stdin.isTTY === true });
  try {
    for await (const line of lines) return line;
    return '';
  } finally {
    lines.close();
    if (stdin.isTTY) printError('\n');
  }
}
