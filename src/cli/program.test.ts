import { expect, it } from 'vitest';
import { sentenceOfOldNode } from './program.ts';

it.each(['24.2.0', '24.11.1', '26.0.0', process.versions.node])('runs on Node %s', (version) => {
  expect(sentenceOfOldNode(version)).toBeNull();
});

it.each(['20.20.2', '22.12.0', '24.1.9'])('says of Node %s that it is too old', (version) => {
  expect(sentenceOfOldNode(version)).toMatch(`Berth needs Node 24.2 or later, and this is ${version}`);
});

it.each(['22.12.0', '22.22.1', '24.2.0'])('runs the conformance suite on Node %s', (version) => {
  expect(sentenceOfOldNode(version, 'conformance')).toBeNull();
});

it.each(['20.20.2', '22.11.0'])('says of Node %s that it is too old for the conformance suite', (version) => {
  expect(sentenceOfOldNode(version, 'conformance')).toMatch('needs Node 22.12 or later');
});
