import { createPrivateKey, generateKeyPairSync, sign } from 'node:crypto';
import { expect, it } from 'vitest';
import { greenReport } from '../report/sample.fixture.ts';
import { readAttestation, toAttestation } from './attestation.ts';
import { signReport } from './sign.ts';

const pem = (): string =>
  generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }).toString();
const key = pem();
const report = signReport(greenReport, 'a'.repeat(64), key);
const text = toAttestation(report, key);

type Json = Record<string, unknown>;
interface Envelope extends Json {
  payload: string;
  payloadType: string;
  signatures: { keyid: string; sig: string }[];
}

const envelope = (): Envelope => JSON.parse(text);
const statement = () => JSON.parse(Buffer.from(envelope().payload, 'base64').toString());

/** An envelope of this payload that the holder of the key signed. */
function sealed(payload: string, more: Partial<Envelope> = {}): string {
  const { payloadType, signatures } = { ...envelope(), ...more };
  const bytes = Buffer.from(payload);
  const signed = `DSSEv1 ${payloadType.length} ${payloadType} ${bytes.length} ${payload}`;
  const sig = sign(null, Buffer.from(signed), createPrivateKey(key)).toString('base64');
  return JSON.stringify({
    payload: bytes.toString('base64'),
    payloadType,
    signatures: [{ keyid: signatures[0]?.keyid, sig }],
  });
}

it('an attestation holds its signed report', () => {
  expect(readAttestation(text)).toEqual(report);
  expect(readAttestation(sealed(JSON.stringify(statement())))).toEqual(report);
});

it.each<[string, RegExp, () => string]>([
  [
    'another payload',
    /not what was signed/,
    () => {
      const { payload } = JSON.parse(sealed(`${JSON.stringify(statement())} `));
      return JSON.stringify({ ...envelope(), payload });
    },
  ],
  [
    'an edited report',
    /not what was signed/,
    () => {
      const edited = statement();
      edited.predicate.report.outcome = 'INCOMPLETE';
      return sealed(JSON.stringify(edited));
    },
  ],
  [
    'the subject of another report',
    /its subject is not its report/,
    () => {
      const edited = statement();
      edited.subject[0].digest.sha256 = '0'.repeat(64);
      return sealed(JSON.stringify(edited));
    },
  ],
  [
    'another target as its subject',
    /its subject is not its report/,
    () => {
      const edited = statement();
      edited.subject[0].name = 'https://other.example/v1';
      return sealed(JSON.stringify(edited));
    },
  ],
  [
    'two subjects',
    /not the in-toto statement/,
    () => {
      const edited = statement();
      edited.subject.push(edited.subject[0]);
      return sealed(JSON.stringify(edited));
    },
  ],
  [
    'another predicate',
    /not the in-toto statement/,
    () => sealed(JSON.stringify({ ...statement(), predicateType: 'https://slsa.dev/provenance/v1' })),
  ],
  [
    'two fields of one name in its payload',
    /not the in-toto statement/,
    () => sealed(JSON.stringify(statement()).replace('{', '{"_type":"x",')),
  ],
  ['two fields of one name', /not a DSSE envelope/, () => text.replace('{', '{"payload":"",')],
  ['another payload type', /not a DSSE envelope/, () => sealed('{}', { payloadType: 'text/plain' })],
  [
    'another key id',
    /names another key/,
    () => JSON.stringify({ ...envelope(), signatures: [{ ...envelope().signatures[0], keyid: 'x' }] }),
  ],
  [
    'a second signature',
    /not a DSSE envelope/,
    () => JSON.stringify({ ...envelope(), signatures: [...envelope().signatures, ...envelope().signatures] }),
  ],
  [
    'a signature of another key',
    /not what was signed/,
    () => {
      const [other] = JSON.parse(toAttestation(report, pem())).signatures;
      const [{ keyid } = { keyid: '' }] = envelope().signatures;
      return JSON.stringify({ ...envelope(), signatures: [{ keyid, sig: other.sig }] });
    },
  ],
  [
    'a report of another form',
    /in its predicate, .*outcome/,
    () => {
      const edited = statement();
      edited.predicate.report.outcome = 'FINE';
      return sealed(JSON.stringify(edited));
    },
  ],
  [
    'a report that is not signed',
    /it is not signed/,
    () => {
      const edited = statement();
      delete edited.predicate.report.signature;
      return sealed(JSON.stringify(edited));
    },
  ],
])('an attestation is refused with %s', (_what, why, forge) => {
  expect(() => readAttestation(forge())).toThrow(why);
});
