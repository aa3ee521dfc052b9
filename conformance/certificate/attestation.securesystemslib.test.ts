import { spawnSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryFolder } from '../cli/cli.fixture.ts';
import { toJson } from '../report/model.ts';
import { greenReport } from '../report/sample.fixture.ts';
import { toAttestation } from './attestation.ts';
import { sha256 } from './digest.ts';
import { signReport } from './sign.ts';

const reader = join(import.meta.dirname, 'read-attestation.fixture.py');
const key = generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }).toString();
const report = signReport(greenReport, 'a'.repeat(64), key);
const publicKey = Buffer.from(report.signature?.public_key ?? '', 'base64').toString('hex');

/** What Debian's python3-securesystemslib reads in an envelope. */
function read(envelope: string) {
  using folder = temporaryFolder();
  const path = folder.file('report.dsse.json');
  writeFileSync(path, envelope);
  const { status, stdout, stderr } = spawnSync('/usr/bin/python3', [reader, path, publicKey], {
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
}

it('securesystemslib verifies an attestation, and reads its statement', () => {
  const { status, stdout, stderr } = read(toAttestation(report, key));
  expect(status, stderr).toBe(0);
  expect(JSON.parse(stdout)).toEqual({
    _type: 'https://in-toto.io/Statement/v1',
    subject: [{ name: report.base_url, digest: { sha256: sha256(toJson(report)) } }],
    predicateType: 'urn:berth:conformance:attestation:1',
    predicate: { report },
  });
});

it('securesystemslib refuses an attestation whose payload was changed', () => {
  const envelope = JSON.parse(toAttestation(report, key));
  const payload = Buffer.from(envelope.payload, 'base64').toString().replace('CONFORMANT', 'INCOMPLETE');
  const changed = { ...envelope, payload: Buffer.from(payload).toString('base64') };
  const { status, stderr } = read(JSON.stringify(changed));
  expect(status).toBe(1);
  expect(stderr).toContain('not verified');
});
