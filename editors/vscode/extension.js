// Starts `tegula lsp` for files of the language; all that is known of a program is known there.
"use strict";

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

function settings() {
  const all = vscode.workspace.getConfiguration("tegula");
  return Object.fromEntries(["target", "machine", "sizes"].map((name) => [name, all.get(name)]));
}

async function start() {
  const command = vscode.workspace.getConfiguration("tegula").get("command");
  client = new LanguageClient(
    "tegula",
    "Tegula",
    { command, args: ["lsp"] },
    {
      documentSelector: [{ language: "tegula" }],
      initializationOptions: settings(),
      synchronize: { configurationSection: "tegula" },
    }
  );
  await client.start();
}

async function stop() {
  const old = client;
  client = undefined;
  if (old) await old.stop();
}

async function activate(context) {
  context.subscriptions.push(
    vscode.commands.registerCommand("tegula.restart", async () => {
      await stop();
      await start();
    })
  );
  await start();
}

module.exports = { activate, deactivate: stop };
