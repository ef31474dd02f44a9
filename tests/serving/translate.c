/* Translates its arguments by a SavedModel, with the C library of TensorFlow alone: one translation a line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensorflow/c/c_api.h"
#include "tensorflow/c/tf_tstring.h"

static void check(TF_Status* status, const char* what) {
  if (TF_GetCode(status) == TF_OK) return;
  fprintf(stderr, "%s: %s\n", what, TF_Message(status));
  exit(1);
}

/* The operation and index that "name:index" says. */
static TF_Output output_of(TF_Graph* graph, const char* name) {
  char operation[256];
  const char* colon = strrchr(name, ':');
  snprintf(operation, sizeof operation, "%.*s", (int)(colon - name), name);
  TF_Output output = {TF_GraphOperationByName(graph, operation), atoi(colon + 1)};
  if (output.oper == NULL) {
    fprintf(stderr, "there is no operation %s\n", operation);
    exit(1);
  }
  return output;
}

/* translate LIBRARY EXPORT INPUT OUTPUT SENTENCE... */
int main(int argc, char** argv) {
  if (argc < 6) return 2;
  TF_Status* status = TF_NewStatus();
  TF_LoadLibrary(argv[1], status);
  check(status, "TF_LoadLibrary");

  TF_Graph* graph = TF_NewGraph();
  TF_SessionOptions* options = TF_NewSessionOptions();
  const char* tags[] = {"serve"};
  TF_Session* session = TF_LoadSessionFromSavedModel(options, NULL, argv[2], tags, 1, graph, NULL, status);
  check(status, "TF_LoadSessionFromSavedModel");

  int64_t count = argc - 5;
  TF_Tensor* text = TF_AllocateTensor(TF_STRING, &count, 1, count * sizeof(TF_TString));
  TF_TString* sentences = TF_TensorData(text);
  for (int64_t i = 0; i < count; i++) {
    TF_StringInit(&sentences[i]);
    TF_StringCopy(&sentences[i], argv[5 + i], strlen(argv[5 + i]));
  }
  TF_Output input = output_of(graph, argv[3]), output = output_of(graph, argv[4]);
  TF_Tensor* found = NULL;
  TF_SessionRun(session, NULL, &input, &text, 1, &output, &found, 1, NULL, 0, NULL, status);
  check(status, "TF_SessionRun");

  const TF_TString* translations = TF_TensorData(found);
  for (int64_t i = 0; i < TF_TensorElementCount(found); i++) {
    printf("%.*s\n", (int)TF_StringGetSize(&translations[i]), TF_StringGetDataPointer(&translations[i]));
  }
  TF_DeleteTensor(found);
  TF_DeleteTensor(text);
  TF_CloseSession(session, status);
  TF_DeleteSession(session, status);
  TF_DeleteSessionOptions(options);
  TF_DeleteGraph(graph);
  TF_DeleteStatus(status);
  return 0;
}
