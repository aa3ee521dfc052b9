import { expect, it } from 'vitest';
import { sentenceOfOldNode } from './program.ts';

it.each(['24.2.0', '24.11.1', '26.0.0', process.versions.node])('runs on Node %s', (version) => {
  expect(sentenceOfOldNode(version)).toBeNull();
});

it.each(['20.20.2', '22.12.0', '24.1.9'])('says of Node %s that it is too old', (version) => {
  expect(sentenceOfOldNode(version)).toMatch(`Berth needs Node 24.2 or later, and this is ${version}`);
});

it.each(['22.14.0', '22.22.1', '24.2.0'])(
  'runs the conformance suite and the sandbox on Node %s',
  (version) => {
    for (const command of ['conformance', 'sandbox']) expect(sentenceOfOldNode(version, command)).toBeNull();
  },
);

it.each(['20.20.2', '22.11.0', '22.13.1'])('says of Node %s that it is too old for these', (version) => {
  for (const command of ['conformance', 'sandbox'])
    expect(sentenceOfOldNode(version, command)).toMatch('needs Node 22.14 or later');
});
