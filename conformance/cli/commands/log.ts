import { Command } from 'commander';
import { parseReport } from '../../certificate/read-report.ts';
import { CertificateError, rawKeyOf } from '../../certificate/sign.ts';
import { compareWithRows, NotJudged } from '../../certificate/verify.ts';
import { CHECKS } from '../../checks/index.ts';
import { loadRequirements } from '../../contract/requirements.ts';
import { audit } from '../../log/audit.ts';
import { formatCheckpoint } from '../../log/checkpoint.ts';
import { addCosignature, cosignLog } from '../../log/cosign.ts';
import { tryEntry } from '../../log/entry.ts';
import { verifierKey } from '../../log/keys.ts';
import { openLog } from '../../log/log.ts';
import { LogDisk } from '../../log/log-disk.ts';
import { isKeyName, KEY_TYPE } from '../../log/note.ts';
import { formatProof } from '../../log/proof.ts';
import { type Published, publish } from '../../log/publish.ts';
import type { Report } from '../../report/report.ts';
import { printable } from '../../text/printable.ts';
import { EXIT } from '../../verdict/outcome.ts';
import { privateKeyOf } from '../keys.ts';
import { isUrl, LOG_KEY, openReader, orUnavailable, readBytes, readKeyFile } from '../log-options.ts';
import { OutputFile } from '../output-file.ts';
import type { CliParts, Finish } from '../parts.ts';
import { CommandError } from '../program.ts';
import { readTextFile } from '../report-file.ts';

interface PublishFlags {
  log: string;
  logKey: string;
  origin?: string;
  saveProof?: string;
}

/** `berth conformance publish <report>`: exits 1 if the report or the log is refused. */
export function publishCommand({ terminal }: CliParts, finish: Finish): Command {
  return new Command('publish')
    .description('append a signed report to a log in a folder, from which nothing can be removed unseen')
    .argument('<report>', 'a report that --json and --sign wrote')
    .requiredOption('--log <folder>', 'the folder of the log; it is made if there is none')
    .requiredOption('--log-key <key.pem>', 'the private Ed25519 key of the log')
    .option('--origin <name>', 'the name of a new log, such as log.example/berth')
    .option('--save-proof <file>', 'write the proof that the report is in the log')
    .action((path: string, { log, logKey, origin, saveProof }: PublishFlags) =>
      orRefused(path, { terminal, finish }, async () => {
        const report = readSigned(path, terminal);
        const key = privateKeyOf(logKey);
        const output = saveProof === undefined ? undefined : new OutputFile('--save-proof', saveProof);
        try {
          const disk = new LogDisk(log);
          const published = await publish(report, { disk, key, ...(origin !== undefined && { origin }) });
          output?.complete(formatProof(published));
          terminal.out(publishedText(report, published, rawKeyOf(key)));
        } finally {
          output?.discard();
        }
      }),
    );
}

/** @throws {CertificateError} if its signature is wrong, or it contradicts itself */
function readSigned(path: string, terminal: CliParts['terminal']): Report {
  const read = parseReport(readTextFile(path));
  if ('problem' in read) throw new CertificateError(read.problem);
  try {
    compareWithRows(read.report, loadRequirements(), CHECKS);
  } catch (error) {
    if (!(error instanceof NotJudged)) throw error;
    terminal.err(`NOTE    Its rows were not checked: ${error.message}.\n`);
  }
  return read.report;
}

function publishedText(report: Report, { index, checkpoint, isNew }: Published, key: Buffer): string {
  const { origin, size } = checkpoint;
  return [
    isNew
      ? `Published: ${report.outcome} at level ${report.level} is entry ${index} of ${origin}, which has ${size}.`
      : `Nothing was appended: the report is entry ${index} of ${origin}, which has ${size}.`,
    `Verifier key: ${verifierKey(origin, KEY_TYPE.ed25519, key)}`,
    '',
  ].join('\n');
}

interface CosignFlags {
  log: string;
  logKey: string;
  key?: string;
  name?: string;
  state?: string;
  out?: string;
  add?: string;
  witnessKey?: string;
}

/** `berth conformance cosign`: exits 1 if the log does not prove that it kept everything. */
export function cosignCommand({ terminal, clock }: CliParts, finish: Finish): Command {
  return new Command('cosign')
    .description('as a witness, cosign the checkpoint of a log that proves that it kept everything')
    .requiredOption('--log <folder or URL>', 'the log')
    .requiredOption('--log-key <file>', LOG_KEY)
    .option('--key <key.pem>', 'the private Ed25519 key of the witness')
    .option('--name <name>', 'the name of the witness, such as witness.example/w1')
    .option('--state <file>', 'where the witness keeps the last checkpoint that it cosigned')
    .option('--out <file>', 'write the cosigned checkpoint here, and not into the folder of the log')
    .option('--add <file>', 'as the log: put the cosignature in this checkpoint of --out into the folder')
    .option('--witness-key <file>', 'with --add: the public key of the witness')
    .action((flags: CosignFlags) =>
      orRefused(flags.log, { terminal, finish }, async () => {
        const text = flags.add === undefined ? await cosignAs(flags, clock.wall) : addTo(flags);
        terminal.out(text);
      }),
    );
}

async function cosignAs(
  { log, logKey, key, name, state, out }: CosignFlags,
  wall: () => number,
): Promise<string> {
  if (key === undefined || name === undefined || state === undefined)
    throw new CommandError('a witness needs --key, --name and --state');
  if (!isKeyName(name))
    throw new CommandError('the name of a witness has no space, no plus and no invisible character');
  if (isUrl(log) && out === undefined)
    throw new CommandError('a log behind a URL cannot be written: give --out too');
  const secret = privateKeyOf(key);
  const output = out === undefined ? undefined : new OutputFile('--out', out);
  try {
    const trusted = readKeyFile(logKey, KEY_TYPE.ed25519);
    const witness = { name, key: secret, statePath: state, wall };
    if (trusted.bytes.equals(rawKeyOf(secret)))
      throw new CommandError('--key is the key of the log: a witness has its own');
    const { cosigned, earlier } = await cosignLog(openReader(log), trusted, witness);
    const note = formatCheckpoint(cosigned);
    output?.complete(note);
    const witnessKey = { bytes: rawKeyOf(secret), name };
    if (output === undefined && !addCosignature(log, Buffer.from(note), trusted, witnessKey))
      throw new CommandError('the log has grown since: cosign it again');
    const since =
      earlier === undefined
        ? 'It was not seen before.'
        : `It still has the ${earlier.size} entries of the last time.`;
    return [
      `Cosigned: the ${cosigned.size} entries of ${printable(cosigned.origin, 100)}. ${since}`,
      `Verifier key: ${verifierKey(name, KEY_TYPE.cosignature, rawKeyOf(secret))}`,
      '',
    ].join('\n');
  } finally {
    output?.discard();
  }
}

function addTo({ log, logKey, add = '', witnessKey }: CosignFlags): string {
  if (witnessKey === undefined) throw new CommandError('--add needs the --witness-key of the cosignature');
  const [ofLog, ofWitness] = [
    readKeyFile(logKey, KEY_TYPE.ed25519),
    readKeyFile(witnessKey, KEY_TYPE.cosignature),
  ];
  if (!addCosignature(log, readBytes(add), ofLog, ofWitness))
    throw new CommandError('the log has grown since: the witness must cosign it again');
  return 'Added: the checkpoint of the log has the cosignature.\n';
}

/** `berth conformance log`: reads all of a log, proves it, and lists its entries. */
export function logCommand({ terminal }: CliParts, finish: Finish): Command {
  return new Command('log')
    .description('read a whole log, prove that its entries are those that it signed, and list them')
    .requiredOption('--log <folder or URL>', 'the log')
    .requiredOption('--log-key <file>', LOG_KEY)
    .action(({ log, logKey }: { log: string; logKey: string }) =>
      orRefused(log, { terminal, finish }, async () => {
        const opened = await openLog(openReader(log), readKeyFile(logKey, KEY_TYPE.ed25519));
        const { wanted } = await audit(opened, () => true);
        const { origin, size } = opened.checkpoint;
        terminal.out(`${printable(origin, 100)}: ${size} entries, as the log signed them.\n`);
        for (const { index, bytes } of wanted) terminal.out(`${index}  ${entryText(bytes)}\n`);
      }),
    );
}

function entryText(bytes: Buffer): string {
  const entry = tryEntry(bytes);
  if (entry === undefined) return 'not a signed report';
  const { outcome, level, base_url, started_at, signature } = entry.report;
  const target = typeof base_url === 'string' ? printable(base_url, 200) : 'a target whose name was removed';
  return `${outcome} at level ${printable(level, 20)}: ${target}, ${printable(started_at, 40)}, signed by ${printable(signature.public_key, 60)}`;
}

/** Exits 0, or 1 and says what is refused. */
async function orRefused(
  what: string,
  { terminal, finish }: Pick<CliParts, 'terminal'> & { finish: Finish },
  work: () => Promise<void>,
): Promise<void> {
  try {
    await orUnavailable(work);
    finish(EXIT.conformant);
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error;
    terminal.err(`${what} is REFUSED: ${error.message}.\n`);
    finish(EXIT.nonConformant);
  }
}
