import { resolve } from 'node:path';
import { Command } from 'commander';
import { isLoopback } from '../../contract/loopback.ts';
import { Fatal } from '../../ports/errors.ts';
import {
  type ListFlags,
  type OutputFlag,
  printDone,
  printRows,
  withList,
  withOutput,
} from '../print-records.ts';
import {
  type Context,
  type ContextKind,
  contextNamed,
  LOCAL,
  readCa,
  readContexts,
  readKey,
  writeContexts,
} from './contexts.ts';

interface AddFlags extends OutputFlag {
  keyFile?: string;
  accountKeyFile?: string;
  marketplace?: true;
  caFile?: string;
}

/** `berth context`: the servers that commands use. */
export function contextCommand(): Command {
  const context = new Command('context');
  withOutput(context.command('add <name> <url>'))
    .description('add a server and the key to use there; keys stay in their files')
    .option('--key-file <file>', 'the key of an operator; the URL is that of the admin listener')
    .option('--marketplace', 'the admin listener is that of a marketplace')
    .option('--account-key-file <file>', 'the key of an account; the URL ends with the API, such as …/v1')
    .option('--ca-file <file>', 'PEM certificates of a private certificate authority')
    .action(add);
  withList(context.command('ls', { isDefault: true }))
    .description('list the contexts')
    .action((flags: ListFlags) => {
      const { current = LOCAL, contexts } = readContexts();
      const local = { name: LOCAL, current: current === LOCAL, kind: 'database', url: null };
      const servers = Object.entries(contexts).map(([name, { kind, url }]) => ({
        name,
        current: name === current,
        kind,
        url,
      }));
      printRows([local, ...servers], flags);
    });
  withOutput(context.command('use <name>'))
    .description('use a context for each command that gives no --context; local is the database')
    .action((name: string, flags: OutputFlag) => {
      const { contexts } = readContexts();
      if (name === LOCAL) writeContexts({ contexts });
      else writeContexts({ current: contextNamed({ contexts }, name).name, contexts });
      printDone(flags, { current: name }, `The context ${name} is in use.`);
    });
  withOutput(context.command('show [name]'))
    .description('show a context; default: the one in use')
    .action((given: string | undefined, flags: OutputFlag) => {
      const contexts = readContexts();
      const name = given ?? contexts.current ?? LOCAL;
      if (name === LOCAL)
        return printDone(flags, { name, kind: 'database' }, 'local: the database of --config or --database.');
      const found = contextNamed(contexts, name);
      const { kind, url, key_file: key, ca_file: ca } = found;
      const lines = [`name: ${name}`, `kind: ${kind}`, `url: ${url}`, `key file: ${key}`];
      printDone(flags, found, ...lines, ...(ca === undefined ? [] : [`CA file: ${ca}`]));
    });
  withOutput(context.command('rm <name>'))
    .description('remove a context; its files stay')
    .action((name: string, flags: OutputFlag) => {
      const known = readContexts();
      contextNamed(known, name);
      const { [name]: _, ...contexts } = known.contexts;
      const isCurrent = known.current === name;
      writeContexts({ ...(!isCurrent && known.current && { current: known.current }), contexts });
      const next = isCurrent ? ` The context ${LOCAL} is in use now.` : '';
      printDone(flags, { name }, `The context ${name} is removed.${next}`);
    });
  return context;
}

const NAME = /^[a-z0-9][a-z0-9._-]{0,62}$/;

function add(name: string, url: string, flags: AddFlags): void {
  const known = readContexts();
  if (!NAME.test(name) || name === LOCAL)
    throw new Fatal(
      `"${name}" cannot name a context: use 1 to 63 of a-z 0-9 . _ - and begin with a letter or digit; local is taken.`,
    );
  if (Object.hasOwn(known.contexts, name))
    throw new Fatal(`There is a context ${name} already: remove it first with \`berth context rm ${name}\`.`);
  const { kind, keyFile } = credentialOf(flags);
  const fields = {
    kind,
    url: toServerUrl(url, kind),
    key_file: resolve(keyFile),
    ...(flags.caFile !== undefined && { ca_file: resolve(flags.caFile) }),
  };
  const context: Context = { name, ...fields };
  readKey(context);
  readCa(context);
  writeContexts({ ...known, contexts: { ...known.contexts, [name]: fields } });
  printDone(flags, context, `The context ${name} is added. Use it: berth context use ${name}`);
}

function credentialOf({ keyFile, accountKeyFile, marketplace }: AddFlags): {
  kind: ContextKind;
  keyFile: string;
} {
  if (keyFile !== undefined && accountKeyFile === undefined)
    return { kind: marketplace ? 'marketplace' : 'operator', keyFile };
  if (accountKeyFile !== undefined && keyFile === undefined && !marketplace)
    return { kind: 'account', keyFile: accountKeyFile };
  throw new Fatal(
    'Give either --key-file, with the key of an operator, or --account-key-file, with the key of an account; --marketplace goes with --key-file.',
  );
}

/** @throws {Fatal} unless a key can be sent there */
function toServerUrl(text: string, kind: ContextKind): string {
  const url = URL.parse(text);
  const example = kind === 'account' ? 'https://gpu.example.com/v1' : 'https://berth.example.com:9080';
  if (url === null || !['https:', 'http:'].includes(url.protocol))
    throw new Fatal(`${text} is not the URL of a server: give one such as ${example}.`);
  if (url.username || url.password || url.search || url.hash)
    throw new Fatal(`${text} has a user, a query or a fragment: give a URL such as ${example}.`);
  if (url.protocol === 'http:' && !isLoopback(url.hostname))
    throw new Fatal(
      `${text} is plain HTTP to another machine, which would show the key to the network: give an https URL, or a tunnel to 127.0.0.1.`,
    );
  const path = url.pathname.replace(/\/+$/, '');
  if (kind !== 'account' && path !== '')
    throw new Fatal(`${text} has a path: give the URL of the admin listener alone, such as ${example}.`);
  return `${url.origin}${path}`;
}
