import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { Command } from 'commander';
import { createAccount, setPassword } from '../orchestrator/accounts/accounts.ts';
import { printLine } from '../runtime/print.ts';
import { type DatabaseFlags, onDatabase, withDatabase } from './database.ts';
import { type JsonFlag, printRecords, toJsonTime, withJson } from './print-records.ts';

/** `berth accounts`: tenants that cannot see each other. */
export function accountsCommand(): Command {
  const accounts = new Command('accounts');
  withDatabase(accounts.command('create <name>'))
    .description('create an account')
    .option('--id <id>', 'the id that it had, where the database was restored and lacks it')
    .action(async (name: string, options: DatabaseFlags & { id?: string }) =>
      onDatabase(options, async (deps) => {
        const { id } = await createAccount(deps, name, options.id);
        printLine(`Account ${name} (${id}) is created. Give it a key: berth keys create --account ${name}`);
      }),
    );
  withJson(withDatabase(accounts.command('list')))
    .description('list the accounts')
    .action(async (options: DatabaseFlags & JsonFlag) =>
      onDatabase(options, async ({ store }) => {
        const records = await store.read.credentials.listAccounts();
        printRecords(
          records,
          [
            { head: 'ID', key: 'id', value: ({ id }) => id },
            { head: 'NAME', key: 'name', value: ({ name }) => name },
            { head: 'PASSWORD', key: 'has_password', value: ({ passwordHash }) => passwordHash !== null },
            { head: 'CREATED', key: 'created_at', value: ({ createdAt }) => toJsonTime(createdAt) },
          ],
          options,
        );
      }),
    );
  withDatabase(accounts.command('set-password <name>'))
    .description(
      'set the password for POST /auth/token, read from the terminal or from standard input; tokens bought with the old one end',
    )
    .action(async (name: string, options: DatabaseFlags) => {
      const password = await readPassword();
      await onDatabase(options, (deps) => setPassword(deps, name, password));
      printLine(`The password of account ${name} is set.`);
    });
  return accounts;
}

/** One line of standard input; a terminal shows nothing of it. */
async function readPassword(): Promise<string> {
  const { stdin } = process;
  if (stdin.isTTY) process.stderr.write('New password: ');
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: stdin, output: silent, terminal: stdin.isTTY === true });
  try {
    for await (const line of lines) return line;
    return '';
  } finally {
    lines.close();
    if (stdin.isTTY) process.stderr.write('\n');
  }
}
