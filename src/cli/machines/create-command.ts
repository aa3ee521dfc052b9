import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { parse } from 'yaml';
import { type CloudInit, cloudInitSchema } from '../../contract/cloud-init.ts';
import type { CreateInstanceRequest } from '../../contract/instance.ts';
import { parseSshPublicKey } from '../../contract/ssh-key.ts';
import { Fatal, fileProblem } from '../../ports/errors.ts';
import { printError, toPrintableLine } from '../../runtime/print.ts';
import { systemClock } from '../../runtime/system.ts';
import { type OutputFlag, printDone, withOutput } from '../print-records.ts';
import type { Machines } from './machine.ts';
import { waitUntilOnline } from './wait.ts';

interface CreateFlags extends OutputFlag {
  offer: string;
  region: string;
  key: string[];
  name?: string;
  image?: string;
  cloudInit?: string;
  account?: string;
  wait?: true;
}

/** Adds the flags of `berth instances create`. */
export function withCreateFlags(command: Command): Command {
  return withOutput(command)
    .description(
      'create an instance, with the key of an account or, for an account, with that of an operator',
    )
    .requiredOption('--offer <id>', 'what to deploy')
    .requiredOption('--region <token>', 'where')
    .requiredOption(
      '--key <file>',
      'a public SSH key that may log in; repeat it for several',
      (file, before: string[] = []) => [...before, file],
    )
    .option('--name <name>', 'its name')
    .option('--image <name>', 'its operating system, one of those that the offer has')
    .option('--cloud-init <file>', 'YAML with runcmd, packages and write_files for its first boot')
    .option('--account <account>', 'whose it is, by name or id; required with the key of an operator')
    .option('--wait', 'wait until it is ONLINE, and print what happens');
}

export async function createMachine(machines: Machines, flags: CreateFlags): Promise<void> {
  const made = await machines.create(toRequest(flags), flags.account);
  const name = flags.name ?? made.id;
  if (!flags.wait)
    return printDone(
      flags,
      made,
      `${name} (${made.id}) is being made. See \`berth instances show ${made.id}\`; log in with \`berth instances ssh ${name}\` once it is ONLINE.`,
    );
  // Who interrupts it, or loses the server, must still know what is billed.
  printError(`${toPrintableLine(`${name} (${made.id}) is being made.`)}\n`);
  const { endpoint, status } = await waitUntilOnline(machines, made, systemClock);
  printDone(
    flags,
    { ...made, status, endpoint },
    `${name} (${made.id}) is ONLINE. Log in: berth instances ssh ${name}`,
  );
}

function toRequest({ offer, region, key, name, image, cloudInit }: CreateFlags): CreateInstanceRequest {
  return {
    configuration_id: offer,
    region,
    ssh_keys: key.map(readKeyFile),
    ...(name !== undefined && { name }),
    ...(image !== undefined && { operating_system_image: image }),
    ...(cloudInit !== undefined && { cloud_init: readCloudInit(cloudInit) }),
  };
}

/** A private key never leaves this machine. @throws {Fatal} */
function readKeyFile(file: string): string {
  const text = readText('--key', file).trim();
  const parsed = parseSshPublicKey(text);
  if ('problem' in parsed) throw new Fatal(`--key ${file}: ${parsed.problem}.`);
  return text;
}

/** The contract has a part of cloud-init: anything else would be ignored. @throws {Fatal} */
function readCloudInit(file: string): CloudInit {
  let value: unknown;
  try {
    value = parse(readText('--cloud-init', file));
  } catch (cause) {
    if (cause instanceof Fatal) throw cause;
    throw new Fatal(`--cloud-init ${file} is not YAML: ${(cause as Error).message.split('\n')[0]}`, {
      cause,
    });
  }
  const parsed = cloudInitSchema.strict().safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new Fatal(
    `--cloud-init ${file}${issue === undefined || issue.path.length === 0 ? '' : ` ${issue.path.join('.')}`}: ${issue?.message}. It may have ${Object.keys(cloudInitSchema.shape).join(', ')}.`,
  );
}

function readText(flag: string, file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new Fatal(`${flag} ${file} cannot be read (${fileProblem(cause)}).`, { cause });
  }
}
