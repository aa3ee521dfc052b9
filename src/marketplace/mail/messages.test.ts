import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  backInStockMessage,
  balanceExhaustedMessage,
  deploymentFailedMessage,
  deploymentReadyMessage,
  lowBalanceMessage,
  receiptMessage,
  toDuration,
} from './messages.ts';

const at = Date.UTC(2026, 10, 21, 4, 38);
const reading = { at, balanceMicroUsd: 4_500_000, burnMicroUsdPerHour: 3_000_000 };
const deployment = {
  id: 'dep-1',
  name: 'training',
  providerId: 'provider-a',
  region: 'eu-frankfurt',
  rateMicroUsd: 1_990_000,
  loginUser: 'ubuntu',
  ipAddress: '203.0.113.7',
  sshPort: 2222,
};

it('says how long the balance lasts', () => {
  expect(lowBalanceMessage({ team: { name: 'Blue' }, ...reading, minutes: 180 })).toEqual({
    subject: 'Low balance: Blue has about 3 h left',
    text: [
      'At 2026-11-21T04:38:00.000Z the balance of Blue was $4.50.',
      'Current usage costs $3.00 per hour, so the balance lasts for about 1 h 30 min.',
      'Top up the balance, or stop or terminate deployments that you do not need.\n',
    ].join('\n\n'),
  });
});

it('says what happens after the balance is used up', () => {
  const { subject, text } = balanceExhaustedMessage({
    team: { name: 'Blue' },
    ...reading,
    balanceMicroUsd: -20_000,
    graceMs: 3_600_000,
    stoppedGraceMs: 72 * 3_600_000,
  });
  expect(subject).toBe('The balance of Blue is used up');
  expect(text).toContain('was -$0.02.');
  expect(text).toContain('stopped in 1 h, or terminated');
  expect(text).toContain('stopped for 72 h are terminated');
});

it('writes a receipt', () => {
  const receipt = { team: { name: 'Blue' }, amountMicroUsd: 50_000_000, balanceMicroUsd: 54_500_000, at };
  const { subject, text } = receiptMessage({ ...receipt, reference: 'pay_77' });
  expect(subject).toBe('Receipt: $50.00 for Blue');
  expect(text).toContain('Reference: pay_77');
  expect(text).toContain('The balance is now $54.50.');
});

it('says how to log in', () => {
  const { subject, text } = deploymentReadyMessage(deployment);
  expect(subject).toBe('Ready: training');
  expect(text).toContain('ssh ubuntu@203.0.113.7 -p 2222');
  expect(text).toContain('$1.99 per hour');
});

it('says why a deployment failed', () => {
  const failed = {
    ...deployment,
    failureReason: 'out_of_stock' as const,
    failureDetails: 'No machine\nleft.',
  };
  const { subject, text } = deploymentFailedMessage({ ...failed, name: '' });
  expect(subject).toBe('Failed: dep-1');
  expect(text).toContain('No machine left.');
});

it('says in which region an offer is back in stock', () => {
  const offer = {
    name: 'H100 × 8',
    offerId: 'h100-8',
    providerId: 'provider-a',
    priceMicroUsdPerHour: 16_000_000,
  };
  const { subject, text } = backInStockMessage(offer as never, ['eu-frankfurt', 'us-east']);
  expect(subject).toBe('Back in stock: H100 × 8');
  expect(text).toContain('in eu-frankfurt, us-east.');
  expect(text).toContain('$16.00 per hour');
});

const names = fc
  .array(
    fc.oneof(
      fc.constantFrom('\r', '\n', '\0', '\u2028', 'Bcc: eve@example.com'),
      fc.nat({ max: 0xffff }).map((unit) => String.fromCharCode(unit)),
    ),
  )
  .map((units) => units.join(''));

it('keeps names from adding headers or lines', () => {
  fc.assert(
    fc.property(names, (name) => {
      const { subject, text } = deploymentReadyMessage({ ...deployment, name });
      expect(subject).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}]/u);
      expect(text.split('\n\n')).toHaveLength(3);
    }),
  );
});

it.each([
  [5, '5 min'],
  [60, '1 h'],
  [90, '1 h 30 min'],
  [720, '12 h'],
])('writes %i minutes as %s', (minutes, text) => {
  expect(toDuration(minutes)).toBe(text);
});
